"""A tasks table as the deployment makes it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def create_tasks_table(client: "DynamoDBClient", name: str) -> None:
    """Keys `pk` and `sk`, on demand, with its index of tasks that wait."""
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": attribute, "AttributeType": "S"} for attribute in ("pk", "sk", "waits_in", "waits_since")
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "waiting",
                "KeySchema": [
                    {"AttributeName": "waits_in", "KeyType": "HASH"},
                    {"AttributeName": "waits_since", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["actor"]},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )


def create_fan_in_table(client: "DynamoDBClient", name: str) -> None:
    """The table of sets, with its index of the open ones."""
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": attribute, "AttributeType": "S"} for attribute in ("pk", "sk", "open_in", "due_at")
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "open",
                "KeySchema": [
                    {"AttributeName": "open_in", "KeyType": "HASH"},
                    {"AttributeName": "due_at", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["actor"]},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )
