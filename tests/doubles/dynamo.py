"""Creates tables in an emulated account as the deployment does."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3
from moto import mock_aws

from asya import registry
from asya_local.dev.resources import table_request

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
    client.create_table(**table_request(registry.PRODUCT.tables["tasks"], name))


def create_fan_in_table(client: "DynamoDBClient", name: str) -> None:
    """Create a fan-in table with its index of open sets."""
    client.create_table(**table_request(registry.PRODUCT.tables["fan-in"], name))
