"""protocol §14 and the circuit breaker of §8 on the deployed mesh, IAM enforced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cloud.deployed_cloud import DeployedCloud, until

if TYPE_CHECKING:
    from asya.tasks.view import TaskView
    from tests.cloud.paths_mesh import FinalState

pytestmark = pytest.mark.cloud


def payload_of(cloud: DeployedCloud, task: TaskView) -> Any:
    return cloud.envelope(task)["payload"]


def test_8_a_circuit_opens_and_what_it_rejects_is_wrapped_like_any_failure(rejected_state: FinalState) -> None:
    assert rejected_state.task.reason == "CircuitOpen"
    assert (rejected_state.payload["details"]["type"], rejected_state.payload["original_payload"]) == (
        "CircuitOpen",
        {},
    )


def test_14_a_message_of_the_second_generation_fans_out_by_numbers(paths: DeployedCloud) -> None:
    message = {"job_id": "order-7", "route": {"steps": ["divide", "advance"]}, "payload": {"count": 3}}
    paths.send_raw("divide", json.dumps(message))
    for envelope_id, number in (("order-7", 0), ("order-7-1", 1), ("order-7-2", 2)):
        task = paths.wait_for_end(envelope_id)
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
