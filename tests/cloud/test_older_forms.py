"""protocol §14 and the circuit breaker of §8 on the deployed mesh, IAM enforced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cloud.deployed_cloud import DeployedCloud, until

if TYPE_CHECKING:
    from asya.protocol.task_view import TaskView

pytestmark = pytest.mark.cloud


def send(cloud: DeployedCloud, actor: str, envelope_id: str, payload: Any, *ahead: str) -> None:
    route = {"actors": [actor, *ahead], "current": 0}
    cloud.send_raw(actor, json.dumps({"id": envelope_id, "route": route, "payload": payload}))


def payload_of(cloud: DeployedCloud, task: TaskView) -> Any:
    return cloud.envelope(task)["payload"]


def reason(cloud: DeployedCloud, envelope_id: str, payload: Any) -> str | None:
    """How an envelope ended at the actor that may be left alone."""
    send(cloud, "flaky", envelope_id, payload)
    return cloud.ended(envelope_id).reason


def test_8_a_circuit_opens_is_probed_and_closes(paths: DeployedCloud) -> None:
    assert [reason(paths, f"down-{number}", {}) for number in range(2)] == ["RuntimeError"] * 2
    assert reason(paths, "rejected", {}) == "CircuitOpen"
    wrapped = payload_of(paths, paths.ended("rejected"))
    assert (wrapped["details"]["type"], wrapped["original_payload"]) == ("CircuitOpen", {})
    # Whoever comes first when it has been open long enough probes.
    numbers = iter(range(1000))
    ended = until(lambda: _succeeded(paths, f"up-{next(numbers)}"), "the circuit to close")
    assert payload_of(paths, ended) == {"up": True}
    assert reason(paths, "after", {"up": True}) is None


def _succeeded(cloud: DeployedCloud, envelope_id: str) -> TaskView | None:
    send(cloud, "flaky", envelope_id, {"up": True})
    task = cloud.ended(envelope_id)
    assert task.status == "succeeded" or task.reason == "CircuitOpen"
    return task if task.status == "succeeded" else None


def test_14_a_message_of_the_second_generation_fans_out_by_numbers(paths: DeployedCloud) -> None:
    message = {"job_id": "order-7", "route": {"steps": ["divide", "advance"]}, "payload": {"count": 3}}
    paths.send_raw("divide", json.dumps(message))
    for envelope_id, number in (("order-7", 0), ("order-7-1", 1), ("order-7-2", 2)):
        task = paths.ended(envelope_id)
        assert task.parent_id == (None if number == 0 else "order-7")
        assert payload_of(paths, task) == {"n": number, "seen_by": "advance"}
        assert task.result_uri is not None
        assert "/happy-asya/20" in task.result_uri
        assert task.result_uri.endswith(f"Z/advance/{envelope_id}.json")


def test_14_an_end_handler_of_ones_own_runs_unchanged(paths: DeployedCloud) -> None:
    message = {"id": "abc-123", "route": {"actors": ["prep", "archive"], "current": 1}, "payload": {"n": 1}}
    paths.send_raw("archive", json.dumps(message))
    place = paths.mesh.connection
    kept = until(lambda: paths.mesh.fetch(f"{place.data.uri}archive/abc-123.json"), "the envelope to be kept")
    envelope = json.loads(kept)
    assert envelope["route"] == {"actors": ["prep", "archive"], "current": 1}
    assert envelope["payload"] == {"n": 1}
    assert paths.mesh.task("abc-123") is None  # nothing is reported of it
