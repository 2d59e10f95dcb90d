"""Fan-in actors such as x-fan-in, and the sweep of open sets (`protocol §9`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra.constructs.event_rules import add_sweep
from asya_infra.constructs.function import declared
from asya_infra.mesh import Mesh


def fan_in_sweep(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
    """Add the function that finds sets past their timeout and counts open sets."""
    settings = declared(mesh, names.FAN_IN_SWEEP, code=mesh.table_code())
    add_sweep(Construct(scope, "FanInSweep"), mesh, layer, settings)
