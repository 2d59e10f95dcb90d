"""protocol §14 and the circuit breaker of §8 on the deployed mesh, IAM enforced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from asya.protocol import names
from asya_cli.connection import read_local
from asya_cli.mesh_client import MeshClient
from infra.local.cloud import UpOptions, down, up
from tests.cloud.deployed_cloud import DeployedCloud, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.protocol.task_view import TaskView

pytestmark = pytest.mark.cloud

MESH = Path(__file__).parent / "meshes" / "older" / "mesh.yaml"


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedCloud]:
    """A mesh whose file, handlers and messages are those of older generations."""
    state = tmp_path_factory.mktemp("older")
    try:
        up(MESH, state, UpOptions(auth=True))
        cloud = DeployedCloud(MeshClient(read_local(state)), state)
        yield cloud
        for actor in ("flaky", "split", "advance", "archive", "x-sink", "x-sump"):
            assert not cloud.messages(names.dlq_name("older", actor)), f"dead letters of {actor}"
    finally:
        down(state)


def send(cloud: DeployedCloud, actor: str, envelope_id: str, payload: Any, *ahead: str) -> None:
    route = {"actors": [actor, *ahead], "current": 0}
    cloud.send_raw(actor, json.dumps({"id": envelope_id, "route": route, "payload": payload}))


def payload_of(cloud: DeployedCloud, task: TaskView) -> Any:
    assert task.result_uri is not None
    body = cloud.mesh.fetch(task.result_uri)
    assert body is not None
    return json.loads(body)["payload"]


def reason(cloud: DeployedCloud, envelope_id: str, payload: Any) -> str | None:
    """How an envelope ended at the actor that may be left alone."""
    send(cloud, "flaky", envelope_id, payload)
    return cloud.ended(envelope_id).reason


def test_8_a_circuit_opens_is_probed_and_closes(older: DeployedCloud) -> None:
    assert [reason(older, f"down-{number}", {}) for number in range(2)] == ["RuntimeError"] * 2
    assert reason(older, "rejected", {}) == "CircuitOpen"
    wrapped = payload_of(older, older.ended("rejected"))
    assert (wrapped["details"]["type"], wrapped["original_payload"]) == ("CircuitOpen", {})
    # Whoever comes first when it has been open long enough probes.
    numbers = iter(range(1000))
    ended = until(lambda: _succeeded(older, f"up-{next(numbers)}"), "the circuit to close")
    assert payload_of(older, ended) == {"up": True}
    assert reason(older, "after", {"up": True}) is None


def _succeeded(cloud: DeployedCloud, envelope_id: str) -> TaskView | None:
    send(cloud, "flaky", envelope_id, {"up": True})
    task = cloud.ended(envelope_id)
    assert task.status == "succeeded" or task.reason == "CircuitOpen"
    return task if task.status == "succeeded" else None


def test_14_a_message_of_the_second_generation_fans_out_by_numbers(older: DeployedCloud) -> None:
    message = {"job_id": "order-7", "route": {"steps": ["split", "advance"]}, "payload": {"count": 3}}
    older.send_raw("split", json.dumps(message))
    for envelope_id, number in (("order-7", 0), ("order-7-1", 1), ("order-7-2", 2)):
        task = older.ended(envelope_id)
        assert task.parent_id == (None if number == 0 else "order-7")
        assert payload_of(older, task) == {"n": number, "seen_by": "advance"}
        assert task.result_uri is not None
        assert "/happy-asya/20" in task.result_uri
        assert task.result_uri.endswith(f"Z/advance/{envelope_id}.json")


def test_14_an_end_handler_of_ones_own_runs_unchanged(older: DeployedCloud) -> None:
    message = {"id": "abc-123", "route": {"actors": ["prep", "archive"], "current": 1}, "payload": {"n": 1}}
    older.send_raw("archive", json.dumps(message))
    place = older.mesh.connection
    kept = until(lambda: older.mesh.fetch(f"{place.data.uri}archive/abc-123.json"), "the envelope to be kept")
    envelope = json.loads(kept)
    assert envelope["route"] == {"actors": ["prep", "archive"], "current": 1}
    assert envelope["payload"] == {"n": 1}
    assert older.mesh.task("abc-123") is None  # nothing is reported of it
