"""What takes longest of all that is sent to the mesh of every path: it was sent first, and is looked at last. IAM is enforced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.journeys import LOST, OVERDUE, Journey, end_of, notes, send

if TYPE_CHECKING:
    from tests.cloud.journeys import End

pytestmark = pytest.mark.cloud


@pytest.mark.rule("5.11.deadline")
def test_the_deadline_ends_a_handler_that_would_have_had_more_time(paths: DeployedCloud) -> None:
    done = end_of(paths, "overdue")
    assert done.why == ("failed", "Timeout")
    # The record may have been read as overdue before x-sink told it why.
    assert done.envelope["status"]["error"]["message"].startswith("Runtime did not respond within")
    assert done.payload == OVERDUE


def test_8_an_open_circuit_is_probed_and_closes(paths: DeployedCloud, rejected: End) -> None:
    assert rejected.task.reason == "CircuitOpen"

    def probed() -> End | None:
        done = end_of(paths, send(paths, Journey(["flaky"], {"up": True})))
        assert done.task.status == "succeeded" or done.task.reason == "CircuitOpen"
        return done if done.task.status == "succeeded" else None

    # Whoever comes first when it has been open long enough probes.
    assert until(probed, "the circuit to close").payload == {"up": True}
    assert end_of(paths, send(paths, Journey(["flaky"], {"up": True}))).task.reason is None


@pytest.mark.rule("5.13")
@pytest.mark.parametrize("name", LOST)
def test_a_process_that_is_lost_gives_its_message_back(paths: DeployedCloud, name: str) -> None:
    done = end_of(paths, name)
    assert (done.task.status, done.payload) == ("succeeded", LOST[name])
    first, second = [note for note in notes(paths, name) if note.what == "call"]
    assert second.at - first.at > 30
