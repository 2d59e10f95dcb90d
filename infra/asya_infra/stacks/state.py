"""The stack with the tables and the bucket, which outlive all other stacks."""

from aws_cdk import CfnOutput, RemovalPolicy
from constructs import Construct

from asya import registry
from asya.protocol import names
from asya_infra.constructs.storage.bucket import MeshStorage
from asya_infra.constructs.storage.tables import Table
from asya_infra.mesh import Mesh
from asya_infra.stacks.base import MeshStack

# `keep` still removes what a failed first deployment has created, which would block the second one.
_REMOVAL = {"keep": RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE, "delete": RemovalPolicy.DESTROY}


class StateStack(MeshStack):
    """Tables and the bucket.

    Attributes:
        task_changes: the ARN of the stream of the tasks table. It is always exported: CloudFormation cannot remove an
            export while another stack imports it.
    """

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, mesh, "state")
        removal = _REMOVAL[mesh.file.storage.removal]
        declared = registry.of(mesh.table).tables
        tables = {name: Table(self, mesh, table, removal) for name, table in declared.items()}
        self.task_changes = self.export_value(tables["tasks"].changes)
        MeshStorage(self, mesh, removal)
        CfnOutput(self, "DataUri", value=mesh.addresses.data.uri)
        CfnOutput(self, "ResultsUri", value=mesh.addresses.results.uri)
        CfnOutput(self, "TasksTable", value=names.table_name(mesh.namespace, "tasks"))
