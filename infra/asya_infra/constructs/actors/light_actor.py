"""A light actor: a function with the sidecar and the user's handler."""

import math

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya import registry
from asya_infra import timings
from asya_infra.constructs.function import EventSourceSettings, FunctionSettings, MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.legacy.variables import handler_variables
from asya_infra.permissions.access import access_grants
from asya_infra.permissions.needs import function_grants
from asya_infra.permissions.resources import Place
from asya_infra.permissions.secrets import secret_grants


def light_actor(
    scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress, name: str
) -> MeshFunction:
    """Add a light actor, or a user's end actor, and connect it to its queue."""
    section, actor, addresses = mesh.file.actors[name], mesh.table.actors[name], mesh.addresses
    access = [*access_grants(section.access, addresses), *secret_grants(section.secrets.values(), addresses)]
    place = Place(addresses=addresses, table=mesh.table)
    function = MeshFunction(
        scope,
        mesh,
        layer,
        FunctionSettings(
            name=name,
            handler=registry.of(mesh.table).actor_functions[actor.kind].entry_point,
            code=mesh.own_code(),
            grants=[*function_grants(name, place), *access],
            timeout=timings.function_timeout(actor.timeout, actor.batch.size),
            memory=section.memory,
            environment={**section.env, **handler_variables(actor), "ASYA_GATEWAY_URL": gateway.url},
            in_chains=True,
            reserved=section.reserved,
            in_vpc=True,
        ),
    )
    function.add_event_source(
        EventSourceSettings(
            batch_size=actor.batch.size,
            window=math.ceil(actor.batch.window),
            concurrency=section.concurrency,
            provisioned=section.provisioned,
            pollers=section.pollers,
        )
    )
    return function
