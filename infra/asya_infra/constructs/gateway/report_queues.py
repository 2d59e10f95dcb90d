"""The function that takes the reports of the mesh from their two queues (`protocol §13`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra import timings
from asya_infra.constructs.function import EventSourceSettings, FunctionSettings, MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.mesh import Mesh
from asya_infra.permissions.gateway import take_reports


def report_queues(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Add the function and connect it to both queues. It sends ends of triggers' tasks to `x-triggers`, and nothing else."""
    settings = FunctionSettings(
        name=names.REPORTS,
        handler="asya.gateway.lambdas.wiring.report_queues",
        code=mesh.table_code(),
        grants=take_reports(mesh.addresses, mesh.table),
        timeout=timings.REPORTS_TIMEOUT,
        in_chains=mesh.is_in_chains(names.REPORTS),
        # Reports that name another gateway go there by HTTP; those that name this one stay here.
        environment={"ASYA_GATEWAY_URL": gateway.url},
    )
    function = MeshFunction(scope, mesh, layer, settings)
    # A window would make each report late, and most batches are full while the mesh is busy.
    source = EventSourceSettings(batch_size=timings.REPORTS_BATCH, concurrency=timings.REPORTS_CONCURRENCY)
    for queue in names.REPORT_QUEUES:
        function.add_event_source(source, queue)
