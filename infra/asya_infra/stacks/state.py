"""The stack with the tables and the bucket, which outlive all other stacks."""

from aws_cdk import CfnOutput
from constructs import Construct

from asya.protocol import names
from asya_infra.constructs.storage.bucket import MeshStorage
from asya_infra.constructs.storage.tables import Table, table_kinds
from asya_infra.mesh import Mesh
from asya_infra.stacks.base import MeshStack


class StateStack(MeshStack):
    """Tables and the bucket. Optional tables exist only if an actor needs them.

    Attributes:
        task_changes: the ARN of the stream of the tasks table. It is always exported: CloudFormation cannot remove an
            export while another stack imports it.
    """

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, mesh, "state")
        tables = {kind: Table(self, mesh.namespace, kind) for kind in table_kinds(mesh.table)}
        self.task_changes = self.export_value(tables["tasks"].changes)
        MeshStorage(self, mesh)
        CfnOutput(self, "DataUri", value=mesh.addresses.data.uri)
        CfnOutput(self, "ResultsUri", value=mesh.addresses.results.uri)
        CfnOutput(self, "TasksTable", value=names.table_name(mesh.namespace, "tasks"))
