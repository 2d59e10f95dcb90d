"""The crew actors x-sink, x-sump, x-checkpoint and x-resume (`protocol §11`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra import timings
from asya_infra.constructs.function import EventSourceSettings, FunctionSettings, MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.mesh import Mesh
from asya_infra.permissions import actors, pauses


def crew(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Add the functions of these actors, unless the mesh file disables one, and connect them to their queues."""
    code = mesh.table_code()
    handlers = {
        names.SINK: "asya.crew.lambdas.wiring.sink",
        names.SUMP: "asya.crew.lambdas.wiring.sump",
        names.CHECKPOINT: "asya.crew.lambdas.wiring.checkpoint",
        names.RESUME: "asya.pause.lambdas.wiring.resume",
    }
    grants = {
        names.SINK: actors.sink(mesh.addresses, mesh.table),
        names.SUMP: actors.sump(mesh.addresses, mesh.table),
        names.CHECKPOINT: actors.checkpoint(mesh.addresses, mesh.table),
        names.RESUME: pauses.resume(mesh.addresses, mesh.table),
    }
    for name, handler in handlers.items():
        section = mesh.file.crew.of(name)
        if not section.enabled:
            continue
        function = MeshFunction(
            scope,
            mesh,
            layer,
            FunctionSettings(
                name=name,
                handler=handler,
                code=code,
                grants=grants[name],
                timeout=timings.CREW_TIMEOUT,
                memory=section.memory,
                environment={"ASYA_GATEWAY_URL": gateway.url},
                in_chains=mesh.is_in_chains(name),
            ),
        )
        function.add_event_source(
            EventSourceSettings(
                batch_size=section.batch_size, concurrency=section.concurrency, provisioned=section.provisioned
            )
        )
