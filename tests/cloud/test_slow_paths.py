"""Tests the slowest envelopes of the paths mesh, which the fixture sends first; IAM is enforced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from asya.protocol import names
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.paths_mesh import LOST_PAYLOADS, OVERDUE_PAYLOAD, NewEnvelope, notes, send, wait_for_final_state

if TYPE_CHECKING:
    from tests.cloud.paths_mesh import FinalState

pytestmark = pytest.mark.cloud


@pytest.mark.rule("5.11.deadline")
def test_the_deadline_ends_a_handler_before_its_time_limit(paths: DeployedCloud) -> None:
    state = wait_for_final_state(paths, "overdue")
    assert state.status_and_reason == ("failed", "Timeout")
    # The gateway may report the task as overdue before x-sink reports the error.
    assert state.envelope["status"]["error"]["message"].startswith("Runtime did not respond within")
    assert state.payload == OVERDUE_PAYLOAD


def test_8_an_open_circuit_is_probed_and_closes(paths: DeployedCloud, rejected_state: FinalState) -> None:
    assert rejected_state.task.reason == "PolicyExhausted"

    def probe() -> FinalState | None:
        state = wait_for_final_state(paths, send(paths, NewEnvelope(["flaky"], {"up": True})))
        assert state.task.status == "succeeded" or state.task.reason == "PolicyExhausted"
        return state if state.task.status == "succeeded" else None

    # The first envelope after the open time probes the circuit.
    assert until(probe, "the circuit to close").payload == {"up": True}
    assert wait_for_final_state(paths, send(paths, NewEnvelope(["flaky"], {"up": True}))).task.reason is None


@pytest.mark.rule("5.13")
@pytest.mark.parametrize("name", LOST_PAYLOADS)
def test_the_message_of_a_lost_process_is_delivered_again(paths: DeployedCloud, name: str) -> None:
    state = wait_for_final_state(paths, name)
    assert (state.task.status, state.payload) == ("succeeded", LOST_PAYLOADS[name])
    sent, first, second = notes(paths, name)
    assert [note.name for note in (sent, first, second)] == ["sent", "call", "call"]
    # The first call follows the send, so a slow machine only lengthens this interval.
    assert second.at - sent.at >= visibility_timeout(paths, "deaf")


def visibility_timeout(cloud: DeployedCloud, actor: str) -> int:
    """The visibility timeout of an actor's queue, in seconds."""
    sqs, attribute = cloud.client("sqs"), "VisibilityTimeout"
    url = sqs.get_queue_url(QueueName=names.queue_name("paths", actor))["QueueUrl"]
    return int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[attribute])["Attributes"][attribute])
