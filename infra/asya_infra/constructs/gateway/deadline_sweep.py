"""The sweep that fails tasks past their deadline (`protocol §13`, backstop)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra.constructs.event_rules import add_sweep
from asya_infra.constructs.function import declared
from asya_infra.mesh import Mesh
from asya_infra.permissions import gateway


def deadline_sweep(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
    """Add the function that checks the deadlines of open tasks."""
    grants = gateway.sweep(mesh.addresses, mesh.table)
    settings = declared(names.TASK_SWEEP, code=mesh.table_code(), grants=grants)
    add_sweep(Construct(scope, "TaskSweep"), mesh, layer, settings)
