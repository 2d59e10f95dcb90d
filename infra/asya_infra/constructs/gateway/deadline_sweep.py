"""The sweep that fails tasks past their deadline (`protocol §13`, backstop)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra.constructs.event_rules import add_sweep
from asya_infra.constructs.function import declared
from asya_infra.mesh import Mesh


def deadline_sweep(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
    """Add the function that checks the deadlines of open tasks."""
    settings = declared(mesh, names.TASK_SWEEP, code=mesh.table_code())
    add_sweep(Construct(scope, "TaskSweep"), mesh, layer, settings)
