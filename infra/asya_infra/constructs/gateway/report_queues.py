"""The function that takes the reports of the mesh from their two queues (`protocol §13`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra import timings
from asya_infra.constructs.function import EventSourceSettings, FunctionSettings, MeshFunction
from asya_infra.mesh import Mesh
from asya_infra.permissions import gateway


def report_queues(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
    """Add the function and connect it to both queues. It sends to no queue, so no chain of calls passes it twice."""
    settings = FunctionSettings(
        name=names.REPORTS,
        handler="asya.gateway.lambdas.wiring.report_queues",
        code=mesh.table_code(),
        grants=gateway.report_queues(mesh.addresses),
        timeout=timings.REPORTS_TIMEOUT,
    )
    function = MeshFunction(scope, mesh, layer, settings)
    # A window would make each report late, and most batches are full while the mesh is busy.
    source = EventSourceSettings(batch_size=timings.REPORTS_BATCH, concurrency=timings.REPORTS_CONCURRENCY)
    for queue in names.REPORT_QUEUES:
        function.add_event_source(source, queue)
