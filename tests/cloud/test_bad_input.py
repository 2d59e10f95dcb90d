"""Bad input: each ends where the protocol says, says why, and the next message is processed."""

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
def good(cloud: DeployedCloud, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A payload that there is nothing wrong with."""
    return cloud.put_dataset(tmp_path_factory.mktemp("good"), 1, "good")


def envelope(envelope_id: str, payload: object, curr: str = FIRST, then: tuple[str, ...] = ()) -> str:
    return json.dumps({"id": envelope_id, "route": {"prev": [], "curr": curr, "next": list(then)}, "payload": payload})


def in_sump(cloud: DeployedCloud, envelope_id: str) -> dict[str, Any]:
    """What x-sump kept."""
    uri = f"{cloud.mesh.connection.results.uri}sump/{safe_segment(envelope_id)}.json"
    kept: dict[str, Any] = json.loads(until(lambda: cloud.mesh.fetch(uri), uri))
    return kept


def assert_failed(task: TaskView, reason: str, *words: str) -> None:
    assert (task.status, task.reason) == ("failed", reason)
    assert task.error is not None
    for word in words:
        assert word in task.error.message


def assert_next_is_processed(cloud: DeployedCloud, good: dict[str, str], envelope_id: str) -> None:
    """A good message after the bad one succeeds, and no dead-letter queue holds anything."""
    cloud.send_raw(FIRST, envelope(envelope_id, good))
    assert cloud.wait_for_end(envelope_id).status == "succeeded"
    for actor in (FIRST, names.SINK, names.SUMP):
        assert cloud.message_count(names.dlq_name(cloud.mesh.connection.namespace, actor)) == 0


@pytest.mark.parametrize("text", ["hello", '{"id": "half', "[1, 2]"])
def test_a_message_that_is_no_json_object(cloud: DeployedCloud, good: dict[str, str], text: str) -> None:
    message_id = cloud.send_raw(FIRST, text)
    envelope_id = id_of_message(message_id)
    assert_failed(cloud.wait_for_end(envelope_id), "ParseError", "Failed to parse message", "JSON")
    kept = in_sump(cloud, envelope_id)
    assert (kept["payload"]["original_message"], kept["payload"]["encoding"]) == (text, "utf-8")
    assert kept["route"] == {"prev": [], "curr": "x-sump", "next": []}
    assert_next_is_processed(cloud, good, f"after-{envelope_id}")


def test_a_message_without_an_id(cloud: DeployedCloud, good: dict[str, str]) -> None:
    text = json.dumps({"route": {"prev": [], "curr": FIRST, "next": []}, "payload": good})
    envelope_id = id_of_message(cloud.send_raw(FIRST, text))
    assert_failed(cloud.wait_for_end(envelope_id), "ParseError", "id is missing")
    assert in_sump(cloud, envelope_id)["payload"]["original_message"] == text
    assert_next_is_processed(cloud, good, "after-no-id")


def test_an_actor_that_the_mesh_does_not_have(cloud: DeployedCloud, good: dict[str, str]) -> None:
    cloud.send_raw(FIRST, envelope("to-nobody", good, then=("nobody",)))
    assert_failed(cloud.wait_for_end("to-nobody"), "RouteMismatch", "nobody")
    assert in_sump(cloud, "to-nobody")["payload"]["flights"] == good["flights"]
    assert_next_is_processed(cloud, good, "after-nobody")


def test_a_message_on_the_queue_of_another_actor(cloud: DeployedCloud, good: dict[str, str]) -> None:
    cloud.send_raw(FIRST, envelope("wrong-queue", good, curr="publish-report"))
    assert_failed(cloud.wait_for_end("wrong-queue"), "RouteMismatch", "publish-report", FIRST)
    assert_next_is_processed(cloud, good, "after-wrong-queue")


def test_a_dataset_that_does_not_exist(cloud: DeployedCloud, good: dict[str, str]) -> None:
    payload = {"flights": "raw/no/such/file.csv.gz"}
    cloud.send_raw(FIRST, envelope("no-dataset", payload, then=("clean-flights",)))
    task, kept = cloud.wait_for_result("no-dataset")
    assert_failed(task, task.reason or "", "raw/no/such/file.csv.gz")
    assert task.error is not None
    assert task.error.type == "FileNotFoundError"
    assert urlsplit(task.result_uri or "").path.endswith("/failed/no-dataset.json")
    assert (kept["payload"], kept["route"]["curr"]) == (payload, FIRST)
    in_sump(cloud, "no-dataset")
    assert_next_is_processed(cloud, good, "after-no-dataset")


def test_a_payload_that_the_handler_cannot_use(cloud: DeployedCloud, good: dict[str, str]) -> None:
    cloud.send_raw(FIRST, envelope("null-payload", None))
    task = cloud.wait_for_end("null-payload")
    assert_failed(task, task.reason or "", "flights")
    assert_next_is_processed(cloud, good, "after-null-payload")
