"""Creates the tasks table and the fan-in table as the deployment does."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


# The indexes of the tasks table: partition key, sort key, and further projected attributes.
TASK_INDEXES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "waiting": ("waits_in", "waits_since", ("actor",)),
    "listed": ("listed_in", "listed_at", ()),
    "children": ("child_of", "listed_at", ()),
    "due": ("due_in", "deadline_at", ()),
}


def create_tasks_table(client: "DynamoDBClient", name: str) -> None:
    """Create a tasks table with its indexes."""
    keys = {name: (partition, sort) for name, (partition, sort, _) in TASK_INDEXES.items()}
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": attribute, "AttributeType": "S"}
            for attribute in sorted({"pk", "sk", *(key for pair in keys.values() for key in pair)})
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": index,
                "KeySchema": [
                    {"AttributeName": partition, "KeyType": "HASH"},
                    {"AttributeName": sort, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(included)}
                if included
                else {"ProjectionType": "KEYS_ONLY"},
            }
            for index, (partition, sort, included) in TASK_INDEXES.items()
        ],
        BillingMode="PAY_PER_REQUEST",
    )


def create_fan_in_table(client: "DynamoDBClient", name: str) -> None:
    """Create a fan-in table with its index of open sets."""
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
