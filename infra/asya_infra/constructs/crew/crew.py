"""The crew actors x-sink, x-sump, x-checkpoint and x-resume (`protocol §11`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra.constructs.function import EventSourceSettings, MeshFunction, declared
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.mesh import Mesh
from asya_infra.permissions import actors, pauses


def crew(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Add the functions of these actors, unless the mesh file disables one, and connect them to their queues."""
    code = mesh.table_code()
    grants = {
        names.SINK: actors.sink(mesh.addresses, mesh.table),
        names.SUMP: actors.sump(mesh.addresses, mesh.table),
        names.CHECKPOINT: actors.checkpoint(mesh.addresses, mesh.table),
        names.RESUME: pauses.resume(mesh.addresses, mesh.table),
    }
    for name, allowed in grants.items():
        section = mesh.file.crew.of(name)
        if not section.enabled:
            continue
        settings = declared(
            name,
            code=code,
            grants=allowed,
            memory=section.memory,
            environment={"ASYA_GATEWAY_URL": gateway.url},
            in_chains=mesh.is_in_chains(name),
        )
        MeshFunction(scope, mesh, layer, settings).add_event_source(
            EventSourceSettings(
                batch_size=section.batch_size, concurrency=section.concurrency, provisioned=section.provisioned
            )
        )
