"""What must outlive everything else: tables and the bucket."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from asya.protocol import names
from infra.mesh import Mesh
from infra.permissions.spark import heavy_actors
from infra.storage import MeshStorage
from infra.tasks import MeshTable


class StateStack(Stack):
    """Tables and bucket. The table of pending envelopes is there only if there is a heavy actor."""

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, names.stack_name(mesh.namespace, "state"))
        for kind in ("tasks", "sink", *(["pending"] if heavy_actors(mesh.table) else [])):
            MeshTable(self, mesh.namespace, kind)
        MeshStorage(self, mesh)
        CfnOutput(self, "DataUri", value=mesh.addresses.data.uri)
        CfnOutput(self, "ResultsUri", value=mesh.addresses.results.uri)
        CfnOutput(self, "TasksTable", value=names.table_name(mesh.namespace, "tasks"))
