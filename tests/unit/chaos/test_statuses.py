"""Tests which readings of a task's status may follow each other."""

import pytest

from tests.chaos.statuses import Sighting, steps_back

RUNNING, PAUSED = Sighting(1, "running", 0, 30), Sighting(2, "paused", 0, 30)
SUCCEEDED, FAILED = Sighting(3, "succeeded", 0, 100), Sighting(3, "failed", 0, 30, "RuntimeError")
DEAD_LETTER = Sighting(3, "failed", 0, 30, "DeliveryExhausted", provisional=True)


@pytest.mark.parametrize(
    ("seen", "goes_back"),
    [
        ([Sighting(0, "pending"), RUNNING, PAUSED, RUNNING, SUCCEEDED], False),
        ([RUNNING, Sighting(2, "pending", 0, 30)], True),
        ([RUNNING, Sighting(2, "running", 0, 20)], True),
        ([SUCCEEDED, RUNNING], True),
        ([SUCCEEDED, FAILED], True),
        ([FAILED, SUCCEEDED], True),
        ([DEAD_LETTER, SUCCEEDED], False),
        ([DEAD_LETTER, PAUSED, SUCCEEDED], False),
        ([DEAD_LETTER, RUNNING], True),
        ([FAILED, Sighting(4, "running", 1)], False),
        ([Sighting(3, "running", 1), Sighting(4, "running", 0)], True),
        ([RUNNING, Sighting(4, "unknown", 0, 30)], True),
    ],
)
def test_statuses_are_monotone(seen: list[Sighting], goes_back: bool) -> None:
    assert [each.envelope_id for each in steps_back({"a": seen})] == (["a"] if goes_back else [])
