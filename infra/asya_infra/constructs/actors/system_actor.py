"""An actor without user code: its queue and a function of the mesh's own."""

from collections.abc import Mapping
from types import MappingProxyType

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya import registry
from asya_infra.constructs.function import EventSourceSettings, FunctionSettings, MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.table import section_of
from asya_infra.permissions.needs import function_grants
from asya_infra.permissions.resources import Place


def system_actor(
    scope: Construct,
    mesh: Mesh,
    layer: lambda_.ILayerVersion,
    gateway: GatewayAddress,
    name: str,
    *,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> MeshFunction:
    """Add the function and connect it to the queue of the same name.

    Args:
        environment: variables besides the address of the gateway.
    """
    section = section_of(mesh.file, name)
    declaration = registry.of(mesh.table).actor_functions[mesh.table.actors[name].kind]
    queues, timeout = declaration.queues, declaration.timeout
    assert queues is not None, f"{name} has code of the user"
    assert timeout is not None, f"{name} has code of the user"
    place = Place(addresses=mesh.addresses, table=mesh.table, key=gateway.key_arn)
    settings = FunctionSettings(
        name=name,
        handler=declaration.entry_point,
        code=mesh.code_of(declaration),
        grants=function_grants(name, place),
        timeout=timeout,
        memory=section.memory,
        environment={"ASYA_GATEWAY_URL": gateway.url, **environment},
        in_chains=mesh.is_in_chains(name),
        reserved=section.reserved,
        in_vpc=not declaration.is_in_layer,
    )
    function = MeshFunction(scope, mesh, layer, settings)
    function.add_event_source(
        EventSourceSettings(
            batch_size=queues.batch,
            window=queues.window,
            concurrency=section.concurrency,
            provisioned=section.provisioned,
            pollers=section.pollers,
        )
    )
    return function
