"""Tests protocol §14 and the circuit breaker of §8 on the deployed mesh, with IAM enforced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cloud.deployed_cloud import DeployedCloud, until

if TYPE_CHECKING:
    from asya.tasks.view import TaskView
    from tests.cloud.paths_mesh import FinalState

pytestmark = pytest.mark.cloud

JOB = "6b1ffbc0-5d1e-4c8a-9f61-2a7d1f0f9a11"


def payload_of(cloud: DeployedCloud, task: TaskView) -> Any:
    return cloud.envelope(task)["payload"]


def test_8_an_open_circuit_rejects_envelopes_with_a_wrapped_payload(rejected_state: FinalState) -> None:
    assert rejected_state.task.reason == "PolicyExhausted"
    assert (rejected_state.payload["details"]["type"], rejected_state.payload["original_payload"]) == (
        "CircuitOpen",
        {},
    )


def test_14_a_legacy_message_fans_out_with_suffixed_ids(paths: DeployedCloud) -> None:
    message = {"job_id": JOB, "route": {"steps": ["divide", "advance"]}, "payload": {"count": 3}}
    paths.send_raw("divide", json.dumps(message))
    for envelope_id, number in ((JOB, 0), (f"{JOB}-1", 1), (f"{JOB}-2", 2)):
        task = paths.wait_for_end(envelope_id)
        assert task.parent_id == (None if number == 0 else JOB)
        assert payload_of(paths, task) == {"n": number, "seen_by": "advance"}
        assert task.result_uri is not None
        assert "/happy-asya/20" in task.result_uri
        assert task.result_uri.endswith(f"Z/advance/{envelope_id}.json")


def test_14_a_legacy_end_handler_runs_unchanged(paths: DeployedCloud) -> None:
    message = {"id": "abc-123", "route": {"actors": ["prep", "archive"], "current": 1}, "payload": {"n": 1}}
    paths.send_raw("archive", json.dumps(message))
    uri = f"{paths.mesh.connection.data.uri}archive/abc-123.json"
    envelope = json.loads(until(lambda: paths.mesh.fetch(uri), "the envelope to be stored"))
    assert envelope["route"] == {"actors": ["prep", "archive"], "current": 1}
    assert envelope["payload"] == {"n": 1}
    assert paths.wait_for_end("abc-123").status == "succeeded"  # x-sink ends the task after the handler
