"""An actor without user code: its queue and a function of the mesh's own."""

from collections.abc import Mapping
from types import MappingProxyType

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya_infra.constructs.function import EventSourceSettings, FunctionSettings, MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.table import section_of
from asya_infra.permissions.grant import Grant


def system_actor(
    scope: Construct,
    mesh: Mesh,
    layer: lambda_.ILayerVersion,
    gateway: GatewayAddress,
    name: str,
    *,
    handler: str,
    grants: list[Grant],
    timeout: int,
    environment: Mapping[str, str] = MappingProxyType({}),
    batch_size: int = EventSourceSettings.batch_size,
    window: int = EventSourceSettings.window,
) -> MeshFunction:
    """Add the function and connect it to the queue of the same name.

    Args:
        handler: the entry point in the layer.
        grants: the function's permissions.
        timeout: seconds.
        environment: variables besides the address of the gateway.
        batch_size: messages per invocation, at most.
        window: seconds that Lambda waits for a full batch.
    """
    section = section_of(mesh.file, name)
    settings = FunctionSettings(
        name=name,
        handler=handler,
        code=mesh.table_code(),
        grants=grants,
        timeout=timeout,
        memory=section.memory,
        environment={"ASYA_GATEWAY_URL": gateway.url, **environment},
        in_chains=mesh.is_in_chains(name),
        reserved=section.reserved,
    )
    function = MeshFunction(scope, mesh, layer, settings)
    function.add_event_source(
        EventSourceSettings(
            batch_size=batch_size,
            window=window,
            concurrency=section.concurrency,
            provisioned=section.provisioned,
            pollers=section.pollers,
        )
    )
    return function
