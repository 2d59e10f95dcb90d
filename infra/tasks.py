"""The mesh's tables. Each has the keys `pk` and `sk` and forgets items whose `expires_at` has passed."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from asya.protocol import names


class MeshTable(Construct):
    """A table paid by the request, restorable to any second of the last 35 days, that outlives the stack."""

    def __init__(self, scope: Construct, namespace: str, kind: str) -> None:
        super().__init__(scope, kind)
        dynamodb.Table(
            self,
            "Table",
            table_name=names.table_name(namespace, kind),
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute="expires_at",
            removal_policy=RemovalPolicy.RETAIN,
        )
