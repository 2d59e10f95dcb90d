"""The slots ahead of now, in order."""

from datetime import UTC, datetime, timedelta

import pytest

from asya.capabilities.triggers.operators.views import upcoming
from asya.capabilities.triggers.slots import ScheduleState
from asya.protocol.triggers import ObjectSource, Trigger

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def every(cron: str, *, enabled: bool = True) -> Trigger:
    return Trigger(route=("greet",), cron=cron, enabled=enabled)


@pytest.mark.rule("16.local")
def test_16_slots_of_all_schedules_come_in_order() -> None:
    """Once for those of one time; without those that are decided, off or paused."""
    triggers = {
        "six": every("0 */6 * * *"),
        "noon": every("0 12 * * *"),
        "decided": every("0 12 * * *"),
        "off": every("* * * * *", enabled=False),
        "paused": every("* * * * *"),
        "landed": Trigger(route=("greet",), objects=ObjectSource(bucket="data")),
    }
    states = {
        "decided": ScheduleState(decided=NOW + timedelta(days=1), schedule=""),
        "paused": ScheduleState(decided=NOW, schedule="", paused=True),
    }
    found = list(upcoming(triggers, states, NOW, NOW + timedelta(days=1)))
    assert [(moment.hour, names) for moment, names in found] == [
        (18, ["six"]),
        (0, ["six"]),
        (6, ["six"]),
        (12, ["noon", "six"]),
    ]
