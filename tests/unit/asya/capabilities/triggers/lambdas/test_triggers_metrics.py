"""The metrics of triggers (`protocol §15`): what started, what never will, what was skipped or missed."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from asya.capabilities.triggers.messages import slot_message
from asya.protocol import names
from asya.testing import Mesh
from asya.testing.messages import put
from asya.testing.services.functions import QuietTelemetry
from asya.testing.services.roles import role_id

START = datetime(2026, 11, 25, 12, 30, tzinfo=UTC)
PAUSE = """
  ask: {kind: pause, pause: {prompt: "Go on?", fields: [{name: yes, type: boolean}]}}
"""


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The counts of all functions by the name of the metric."""
    found: Counter[str] = Counter()

    def count(_self: QuietTelemetry, name: str, amount: float = 1, **_: object) -> None:
        found[name] += int(amount)

    monkeypatch.setattr(QuietTelemetry, "count", count)
    return found


@pytest.mark.rule("15.TriggersFired", "15.TriggersFailed")
def test_15_starts_and_failures_count(folder: Path, counts: Counter[str]) -> None:
    mesh = Mesh(folder / "mesh.yaml", start=START)
    mesh.fire("nightly")
    assert (counts["TriggersFired"], counts["TriggersFailed"]) == (1, 0)
    mesh.fire("wrong")
    assert (counts["TriggersFired"], counts["TriggersFailed"]) == (1, 1)


@pytest.mark.rule("15.SlotsMissed")
def test_15_slots_beyond_catch_up_count_once(folder: Path, counts: Counter[str]) -> None:
    """Nobody sweeps for five hours; three of them are within `catch_up`."""
    mesh = Mesh(folder / "mesh.yaml", start=START)
    mesh.travel(minutes=2)
    mesh.cloud.advance(5 * 3600.0)
    mesh.travel(minutes=3)
    assert counts["SlotsMissed"] == 2
    assert {run.status for run in mesh.runs()} == {"succeeded"}
    assert len(mesh.runs()) == 3


@pytest.mark.rule("15.TriggersSkipped")
def test_15_skipped_occurrences_count(folder: Path, counts: Counter[str]) -> None:
    """A task waits for an answer while the next slot comes."""
    text = (folder / "mesh.yaml").read_text().replace("tools:", PAUSE.strip("\n") + "\ntools:", 1)
    text += '  asking: {route: [ask], cron: "0 * * * *", overlap: skip}\n'
    (folder / "mesh.yaml").write_text(text)
    mesh = Mesh(folder / "mesh.yaml", start=START)
    for hours in (1, 2):
        slot = START.replace(minute=0) + timedelta(hours=hours)
        put(mesh.cloud, names.TRIGGERS, slot_message("asking", slot).decode(), sender=role_id(names.TASK_SWEEP))
        mesh.cloud.run_until_idle()
    assert counts["TriggersSkipped"] == 1
    assert [run.status for run in mesh.runs()] == ["paused"]
