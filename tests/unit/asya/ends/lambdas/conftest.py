"""Fixtures of the crew's functions."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from asya.function.aws import clients
from tests.doubles.mesh_world import MeshWorld, empty_table, emulated_table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.fixture(scope="module")
def client() -> "Iterator[DynamoDBClient]":
    """The table of the ends, emulated."""
    with emulated_table("sink") as made:
        yield made


@pytest.fixture
def sink_claims(world: MeshWorld, client: "DynamoDBClient", monkeypatch: pytest.MonkeyPatch) -> None:
    """x-sink claims ends in an empty table."""
    empty_table(client, "sink")
    monkeypatch.setattr(clients, "dynamodb", lambda: client)
