"""The tables of a mesh. Each has the keys `pk` and `sk`, and `expires_at` as time to live."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from asya.fan_in.aws.items import OPEN_INDEX
from asya.protocol import names
from asya.tasks.aws.index import CHILDREN_INDEX, DUE_INDEX, LISTED_INDEX
from asya.tasks.aws.items import WAITING_INDEX
from asya_infra.constructs.customer_key import customer_key
from asya_infra.mesh import Mesh

KINDS = ("tasks", "sink", "fan-in", "pending", "hops", "breaker")

# Tasks by status, by parent and by deadline.
_TASK_INDEXES = (
    (LISTED_INDEX, "listed_in", "listed_at"),
    (CHILDREN_INDEX, "child_of", "listed_at"),
    (DUE_INDEX, "due_in", "deadline_at"),
)


class Table(Construct):
    """An on-demand table with point-in-time recovery.

    Attributes:
        changes: the ARN of the stream; None for all tables but `tasks`.
    """

    def __init__(self, scope: Construct, mesh: Mesh, kind: str, removal: RemovalPolicy) -> None:
        super().__init__(scope, kind)
        key = customer_key(self, mesh)
        table = dynamodb.Table(
            self,
            "Table",
            table_name=names.table_name(mesh.namespace, kind),
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            # Without a key the template says nothing, and DynamoDB uses one of its own.
            encryption=None if key is None else dynamodb.TableEncryption.CUSTOMER_MANAGED,
            encryption_key=key,
            time_to_live_attribute="expires_at",
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES if kind == "tasks" else None,
            removal_policy=removal,
        )
        self.changes = table.table_stream_arn
        if kind == "fan-in":
            _index_open_sets(table)
        if kind == "tasks":
            _index_waiting_tasks(table)
            for name, partition, sort in _TASK_INDEXES:
                _index_keys(table, name, partition, sort)


def _index_open_sets(table: dynamodb.Table) -> None:
    """Add the sparse index of open sets, for the sweep of sets."""
    table.add_global_secondary_index(
        index_name=OPEN_INDEX,
        partition_key=dynamodb.Attribute(name="open_in", type=dynamodb.AttributeType.STRING),
        sort_key=dynamodb.Attribute(name="due_at", type=dynamodb.AttributeType.STRING),
        projection_type=dynamodb.ProjectionType.INCLUDE,
        non_key_attributes=["actor"],
    )


def _index_waiting_tasks(table: dynamodb.Table) -> None:
    """Add the sparse index of paused tasks and unfinished releases, for the sweep of pauses."""
    table.add_global_secondary_index(
        index_name=WAITING_INDEX,
        partition_key=dynamodb.Attribute(name="waits_in", type=dynamodb.AttributeType.STRING),
        sort_key=dynamodb.Attribute(name="waits_since", type=dynamodb.AttributeType.STRING),
        projection_type=dynamodb.ProjectionType.INCLUDE,
        non_key_attributes=["actor"],
    )


def _index_keys(table: dynamodb.Table, name: str, partition: str, sort: str) -> None:
    """Add a sparse index of records with these attributes. It has only their keys."""
    table.add_global_secondary_index(
        index_name=name,
        partition_key=dynamodb.Attribute(name=partition, type=dynamodb.AttributeType.STRING),
        sort_key=dynamodb.Attribute(name=sort, type=dynamodb.AttributeType.STRING),
        projection_type=dynamodb.ProjectionType.KEYS_ONLY,
    )
