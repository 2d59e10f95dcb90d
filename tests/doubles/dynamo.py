"""Creates the tasks table and the fan-in table as the deployment does."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3
from moto import mock_aws

from asya.testing.dynamo.indexes import TASK_INDEXES

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@contextmanager
def emulated_tasks() -> "Iterator[DynamoDBClient]":
    """The client of an emulated account that has the table `tasks`."""
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1")
        create_tasks_table(client, "tasks")
        yield client


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
