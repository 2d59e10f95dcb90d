"""The functions of capabilities that the mesh file names, but for those that answer calls."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya import registry
from asya.manifest import Queues, Schedule
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.constructs.mesh_function import MeshFunction, add_sweep, declared
from asya_infra.mesh import Mesh


def own_functions(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Add the functions, each with its queue or its schedule."""
    for each in registry.own_functions(mesh.table):
        code, environment = mesh.code_of(each), {"ASYA_GATEWAY_URL": gateway.url}
        if isinstance(each.called_by, Schedule):
            sweep = Construct(scope, f"Sweep-{each.name}")
            add_sweep(sweep, mesh, layer, declared(mesh, each.name, code=code, environment=environment))
        elif isinstance(each.called_by, Queues):
            settings = declared(mesh, each.name, code=code, environment=environment)
            MeshFunction(scope, mesh, layer, settings).add_declared_event_sources()
