"""The tables of a mesh. Each has the keys `pk` and `sk`, and `expires_at` as time to live."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from asya import stores
from asya.protocol import names
from asya.protocol.table_keys import EXPIRY
from asya_infra.constructs.customer_key import customer_key
from asya_infra.mesh import Mesh


class Table(Construct):
    """An on-demand table with point-in-time recovery.

    Attributes:
        changes: the ARN of the stream; None without one.
    """

    def __init__(self, scope: Construct, mesh: Mesh, declared: stores.Table, removal: RemovalPolicy) -> None:
        super().__init__(scope, declared.name)
        key = customer_key(self, mesh)
        table = dynamodb.Table(
            self,
            "Table",
            table_name=names.table_name(mesh.namespace, declared.name),
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            # Without a key the template says nothing, and DynamoDB uses one of its own.
            encryption=None if key is None else dynamodb.TableEncryption.CUSTOMER_MANAGED,
            encryption_key=key,
            time_to_live_attribute=EXPIRY,
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES if declared.streams_changes else None,
            removal_policy=removal,
        )
        self.changes = table.table_stream_arn
        for index in declared.indexes:
            _add_index(table, index)


def _add_index(table: dynamodb.Table, index: stores.Index) -> None:
    table.add_global_secondary_index(
        index_name=index.name,
        partition_key=dynamodb.Attribute(name=index.partition, type=dynamodb.AttributeType.STRING),
        sort_key=dynamodb.Attribute(name=index.sort, type=dynamodb.AttributeType.STRING),
        projection_type=dynamodb.ProjectionType.INCLUDE if index.included else dynamodb.ProjectionType.KEYS_ONLY,
        non_key_attributes=list(index.included) or None,
    )
