"""Decisions about a lane, at the moments and sizes where they change."""

from datetime import UTC, datetime, timedelta

import pytest

from asya.protocol.times import format_time
from asya.protocol.triggers import Trigger, TriggerBatch
from asya.triggers.lane_changes import BATCH_BYTES, ends
from asya.triggers.lanes import Start, Window, WindowKind

DUE = datetime(2026, 11, 25, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)
DEBOUNCE = Trigger(route=("greet",), debounce=30.0)
BATCH = Trigger(route=("greet",), batch=TriggerBatch(size=3, window=30.0))


def window(kind: WindowKind, count: int = 1, size: int = 0) -> Window:
    start = Start(id="t", at=format_time(DUE), opener="o", window=kind)
    return Window(start=start, due=format_time(DUE), latest=format_time(DUE), count=count, size=size, last=("", ""))


@pytest.mark.rule("16.window")
@pytest.mark.parametrize(("kind", "trigger"), [("debounce", DEBOUNCE), ("batch", BATCH)])
def test_16_a_window_ends_when_it_is_due(kind: WindowKind, trigger: Trigger) -> None:
    assert not ends(window(kind), trigger, DUE - INSTANT)
    assert ends(window(kind), trigger, DUE)


@pytest.mark.rule("16.batch")
def test_16_a_batch_ends_with_its_last_occurrence_or_byte() -> None:
    before = DUE - INSTANT
    assert [ends(window("batch", count), BATCH, before) for count in (2, 3, 4)] == [False, True, True]
    full = window("batch", size=BATCH_BYTES - 10)
    assert [ends(full, BATCH, before, size) for size in (0, 10, 11)] == [False, False, True]


@pytest.mark.rule("16.window")
def test_16_a_window_of_other_settings_ends_at_once() -> None:
    assert ends(window("batch"), DEBOUNCE, DUE - INSTANT)
