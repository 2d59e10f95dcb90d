"""The mesh's own actors: x-sink, where every route ends, and x-sump, where what cannot go on ends (`protocol §11`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from infra import derived
from infra.build.functions import build_table
from infra.function import FeedSettings, FunctionSettings, MeshFunction
from infra.gateway import GatewayAddress
from infra.mesh import Mesh
from infra.permissions import actors


def crew(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Both end actors, fed by their queues."""
    api_id = gateway.api_id
    code = lambda_.Code.from_asset(str(build_table(mesh.options.build_folder, mesh.table_bytes)))
    handlers = {names.SINK: "asya.lambdas.sink.handle", names.SUMP: "asya.lambdas.sump.handle"}
    grants = {
        names.SINK: actors.sink(mesh.addresses, mesh.table.sink.hooks, api_id),
        names.SUMP: actors.sump(mesh.addresses, api_id),
    }
    for name, handler in handlers.items():
        function = MeshFunction(
            scope,
            mesh,
            layer,
            FunctionSettings(
                name=name,
                handler=handler,
                code=code,
                grants=grants[name],
                timeout=derived.CREW_TIMEOUT,
                environment={"ASYA_GATEWAY_URL": gateway.url},
            ),
        )
        function.fed_by_queue(FeedSettings())
