"""What takes longest of all that is sent to the mesh of every path: it was sent first, and is looked at last. IAM is enforced."""

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
def test_the_deadline_ends_a_handler_that_would_have_had_more_time(paths: DeployedCloud) -> None:
    state = wait_for_final_state(paths, "overdue")
    assert state.status_and_reason == ("failed", "Timeout")
    # The record may have been read as overdue before x-sink told it why.
    assert state.envelope["status"]["error"]["message"].startswith("Runtime did not respond within")
    assert state.payload == OVERDUE_PAYLOAD


def test_8_an_open_circuit_is_probed_and_closes(paths: DeployedCloud, rejected_state: FinalState) -> None:
    assert rejected_state.task.reason == "CircuitOpen"

    def probed() -> FinalState | None:
        state = wait_for_final_state(paths, send(paths, NewEnvelope(["flaky"], {"up": True})))
        assert state.task.status == "succeeded" or state.task.reason == "CircuitOpen"
        return state if state.task.status == "succeeded" else None

    # Whoever comes first when it has been open long enough probes.
    assert until(probed, "the circuit to close").payload == {"up": True}
    assert wait_for_final_state(paths, send(paths, NewEnvelope(["flaky"], {"up": True}))).task.reason is None


@pytest.mark.rule("5.13")
@pytest.mark.parametrize("name", LOST_PAYLOADS)
def test_a_process_that_is_lost_gives_its_message_back(paths: DeployedCloud, name: str) -> None:
    state = wait_for_final_state(paths, name)
    assert (state.task.status, state.payload) == ("succeeded", LOST_PAYLOADS[name])
    sent, first, second = notes(paths, name)
    assert [note.what for note in (sent, first, second)] == ["sent", "call", "call"]
    # The first call took it after it was sent. On a slow machine all of it takes longer, never less.
    assert second.at - sent.at >= visibility_timeout(paths, "deaf")


def visibility_timeout(cloud: DeployedCloud, actor: str) -> int:
    """Seconds for which nobody sees what was taken from an actor's queue."""
    sqs, attribute = cloud.client("sqs"), "VisibilityTimeout"
    url = sqs.get_queue_url(QueueName=names.queue_name("paths", actor))["QueueUrl"]
    return int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[attribute])["Attributes"][attribute])
