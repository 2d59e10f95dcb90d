"""The function that starts the tasks of triggers (`protocol §16`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra.build.functions import build_gateway
from asya_infra.constructs.function import MeshFunction, declared
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.constructs.trigger_sources import event_rules
from asya_infra.mesh import Mesh


def triggers(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Add the function and connect it to its queue. It has the validator of tools' arguments, as the API has."""
    options = mesh.options
    code = build_gateway(options.build_folder, options.packages_target, mesh.table_bytes)
    settings = declared(
        mesh,
        names.TRIGGERS,
        code=lambda_.Code.from_asset(str(code)),
        environment={"ASYA_GATEWAY_URL": gateway.url},
    )
    function = MeshFunction(scope, mesh, layer, settings)
    function.add_declared_event_sources()
    event_rules(scope, mesh, function)
