"""The function that takes the reports of the mesh from their two queues (`protocol §13`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra.constructs.function import MeshFunction, declared
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.mesh import Mesh


def report_queues(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Add the function and connect it to both queues. It sends ends of triggers' tasks to `x-triggers`, and nothing else."""
    settings = declared(
        mesh,
        names.REPORTS,
        code=mesh.table_code(),
        # Reports that name another gateway go there by HTTP; those that name this one stay here.
        environment={"ASYA_GATEWAY_URL": gateway.url},
    )
    MeshFunction(scope, mesh, layer, settings).add_declared_event_sources()
