"""Tests that bad input ends as the protocol says, with a reason, and that the next message is processed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from asya.protocol import names
from asya.protocol.ids import id_of_message
from asya.protocol.keys import safe_segment
from tests.cloud.deployed_cloud import DeployedCloud, until

if TYPE_CHECKING:
    from asya.tasks.view import TaskView

pytestmark = pytest.mark.cloud

FIRST = "inspect-dataset"


@pytest.fixture(scope="module")
def valid_payload(cloud: DeployedCloud, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A valid payload."""
    return cloud.put_dataset(tmp_path_factory.mktemp("valid"), 1, "valid")


def envelope(envelope_id: str, payload: object, curr: str = FIRST, ahead: tuple[str, ...] = ()) -> str:
    return json.dumps({"id": envelope_id, "route": {"prev": [], "curr": curr, "next": list(ahead)}, "payload": payload})


def sump_copy(cloud: DeployedCloud, envelope_id: str) -> dict[str, Any]:
    """Waits for the copy of x-sump and returns it."""
    uri = f"{cloud.mesh.connection.results.uri}sump/{safe_segment(envelope_id)}.json"
    copy: dict[str, Any] = json.loads(until(lambda: cloud.mesh.fetch(uri), uri))
    return copy


def assert_failed(task: TaskView, reason: str, *words: str) -> None:
    assert (task.status, task.reason) == ("failed", reason)
    assert task.error is not None
    for word in words:
        assert word in task.error.message


def assert_next_is_processed(cloud: DeployedCloud, valid_payload: dict[str, str], envelope_id: str) -> None:
    """Checks that the next valid message succeeds, and that the dead-letter queues are empty."""
    cloud.send_raw(FIRST, envelope(envelope_id, valid_payload))
    assert cloud.wait_for_end(envelope_id).status == "succeeded"
    for actor in (FIRST, names.SINK, names.SUMP):
        assert cloud.message_count(names.dlq_name(cloud.mesh.connection.namespace, actor)) == 0


@pytest.mark.parametrize("text", ["hello", '{"id": "half', "[1, 2]"])
def test_a_message_that_is_not_a_json_object(cloud: DeployedCloud, valid_payload: dict[str, str], text: str) -> None:
    message_id = cloud.send_raw(FIRST, text)
    envelope_id = id_of_message(message_id)
    assert_failed(cloud.wait_for_end(envelope_id), "ParseError", "Failed to parse message", "JSON")
    copy = sump_copy(cloud, envelope_id)
    assert (copy["payload"]["original_message"], copy["payload"]["encoding"]) == (text, "utf-8")
    assert copy["route"] == {"prev": [], "curr": "x-sump", "next": []}
    assert_next_is_processed(cloud, valid_payload, f"after-{envelope_id}")


def test_a_message_without_an_id(cloud: DeployedCloud, valid_payload: dict[str, str]) -> None:
    text = json.dumps({"route": {"prev": [], "curr": FIRST, "next": []}, "payload": valid_payload})
    envelope_id = id_of_message(cloud.send_raw(FIRST, text))
    assert_failed(cloud.wait_for_end(envelope_id), "ParseError", "id is missing")
    assert sump_copy(cloud, envelope_id)["payload"]["original_message"] == text
    assert_next_is_processed(cloud, valid_payload, "after-no-id")


def test_an_unknown_actor_in_the_route(cloud: DeployedCloud, valid_payload: dict[str, str]) -> None:
    cloud.send_raw(FIRST, envelope("to-nobody", valid_payload, ahead=("nobody",)))
    assert_failed(cloud.wait_for_end("to-nobody"), "RouteMismatch", "nobody")
    assert sump_copy(cloud, "to-nobody")["payload"]["flights"] == valid_payload["flights"]
    assert_next_is_processed(cloud, valid_payload, "after-nobody")


def test_a_message_on_the_queue_of_another_actor(cloud: DeployedCloud, valid_payload: dict[str, str]) -> None:
    cloud.send_raw(FIRST, envelope("wrong-queue", valid_payload, curr="publish-report"))
    assert_failed(cloud.wait_for_end("wrong-queue"), "RouteMismatch", "publish-report", FIRST)
    assert_next_is_processed(cloud, valid_payload, "after-wrong-queue")


def test_a_missing_dataset(cloud: DeployedCloud, valid_payload: dict[str, str]) -> None:
    payload = {"flights": "raw/no/such/file.csv.gz"}
    cloud.send_raw(FIRST, envelope("no-dataset", payload, ahead=("clean-flights",)))
    task, stored_envelope = cloud.wait_for_result("no-dataset")
    assert_failed(task, task.reason or "", "raw/no/such/file.csv.gz")
    assert task.error is not None
    assert task.error.type == "FileNotFoundError"
    assert urlsplit(task.result_uri or "").path.endswith("/failed/no-dataset.json")
    assert (stored_envelope["payload"], stored_envelope["route"]["curr"]) == (payload, FIRST)
    sump_copy(cloud, "no-dataset")
    assert_next_is_processed(cloud, valid_payload, "after-no-dataset")


def test_a_payload_that_the_handler_cannot_use(cloud: DeployedCloud, valid_payload: dict[str, str]) -> None:
    cloud.send_raw(FIRST, envelope("null-payload", None))
    task = cloud.wait_for_end("null-payload")
    assert_failed(task, task.reason or "", "payload: should be an object; got null")
    assert_next_is_processed(cloud, valid_payload, "after-null-payload")
