"""The sweep that fails tasks past their deadline (`protocol §13`, backstop)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra.constructs.event_rules import add_sweep
from asya_infra.constructs.function import FunctionSettings
from asya_infra.mesh import Mesh
from asya_infra.permissions import gateway

_SCHEDULE = "rate(1 minute)"
_TIMEOUT = 60


def deadline_sweep(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
    """Add the function that checks the deadlines of open tasks."""
    settings = FunctionSettings(
        name=names.TASK_SWEEP,
        handler="asya.gateway.lambdas.wiring.deadline_sweep",
        code=mesh.table_code(),
        grants=gateway.sweep(mesh.addresses, mesh.table),
        timeout=_TIMEOUT,
    )
    sweep = Construct(scope, "TaskSweep")
    add_sweep(sweep, mesh, layer, settings, rule="task-sweep", schedule=_SCHEDULE, subject="the deadlines of the tasks")
