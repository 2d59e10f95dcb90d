"""A mesh whose actors fan out and in, and payloads and ids of its sets, for tests of protocol §9."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from asya.protocol import ids
from asya.protocol.mesh_table import FanIn
from tests.doubles.dynamo import create_fan_in_table, create_tasks_table
from tests.doubles.fan_mesh import FanMesh, QueuedMessage, fan_table
from tests.doubles.mesh_world import MeshWorld, empty_table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PARTIAL = FanIn(on_failure="partial")
SET = ids.set_id("env-1", 0, 0)


@pytest.fixture(scope="module")
def dynamodb() -> "Iterator[DynamoDBClient]":
    """The tables in moto, with real conditions."""
    with mock_aws():
        client = boto3.Session("testing", "testing", region_name="eu-west-1").client("dynamodb")
        create_fan_in_table(client, "asya-shop-fan-in")
        create_tasks_table(client, "asya-shop-sink")
        yield client


Start = Callable[..., FanMesh]


@pytest.fixture
def start(world: MeshWorld, dynamodb: "DynamoDBClient") -> Start:
    """Makes the mesh of a test."""

    def made(rule: FanIn | None = None, **more: Any) -> FanMesh:
        for kind in ("fan-in", "sink"):
            empty_table(dynamodb, kind)
        return FanMesh(world, dynamodb, fan_table(rule), **more)

    return made


def numbers(count: int) -> dict[str, Any]:
    """A payload with this many items to score."""
    return {"items": [{"n": n} for n in range(1, count + 1)], "kept": "as it was"}


def scored(count: int) -> list[Any]:
    """The results of this many items."""
    return [{"scored": n * 10} for n in range(1, count + 1)]


def child(index: int, position: int = 0) -> str:
    """The id of a slice of the origin."""
    return ids.child_id("env-1", 0, position, index)


def hold_back(mesh: FanMesh, slice_id: str) -> list[QueuedMessage]:
    """Hold a slice back once; the test appends it from the list to `mesh.queued` later."""
    held: list[QueuedMessage] = []

    def hold(message: QueuedMessage) -> bool:
        if message.actor == "x-fan-in" and slice_id in message.body and not held:
            held.append(message)
            return True
        return False

    mesh.is_lost = hold
    return held


def failure(mesh: FanMesh) -> tuple[str, str, str]:
    """The reason, error type and error message of the failed origin."""
    status = mesh.result(phase="failed")["status"]
    return status["reason"], status["error"]["type"], status["error"]["message"]
