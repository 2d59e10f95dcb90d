"""The crew actors x-sink, x-sump, x-checkpoint and x-resume (`protocol §11`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya import registry
from asya_infra.constructs.function import EventSourceSettings, MeshFunction, declared
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.mesh import Mesh


def crew(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Add the functions of these actors, unless the mesh file disables one, and connect them to their queues."""
    code = mesh.table_code()
    for name in registry.of(mesh.table).crew:
        section = mesh.file.crew.of(name)
        if not section.enabled:
            continue
        settings = declared(
            mesh,
            name,
            code=code,
            memory=section.memory,
            environment={"ASYA_GATEWAY_URL": gateway.url},
        )
        MeshFunction(scope, mesh, layer, settings).add_event_source(
            EventSourceSettings(
                batch_size=section.batch_size, concurrency=section.concurrency, provisioned=section.provisioned
            )
        )
