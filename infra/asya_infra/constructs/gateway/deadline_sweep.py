"""The sweep that writes tasks past their deadline down as failed (`protocol §13`, backstop)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra.constructs.function import FunctionSettings, MeshFunction
from asya_infra.constructs.schedule import woken
from asya_infra.mesh import Mesh
from asya_infra.permissions import gateway

_SWEEP = "rate(1 minute)"
_TIMEOUT = 60


class DeadlineSweep(Construct):
    """Every minute: deadlines that have passed."""

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
        super().__init__(scope, "TaskSweep")
        settings = FunctionSettings(
            name=names.TASK_SWEEP,
            handler="asya.gateway.lambdas.wiring.deadline_sweep",
            code=mesh.table_only(),
            grants=gateway.sweep(mesh.addresses),
            timeout=_TIMEOUT,
        )
        function = MeshFunction(self, mesh, layer, settings).function
        woken(self, mesh, function, name="task-sweep", every=_SWEEP, why="the deadlines of the tasks")
