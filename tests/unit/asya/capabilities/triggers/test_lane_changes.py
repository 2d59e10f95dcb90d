"""Decisions about a lane, at the moments and sizes where they change."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from asya.capabilities.triggers.lane_changes import BATCH_BYTES, ends, settle
from asya.capabilities.triggers.lanes import Lane, Start, Window, WindowKind
from asya.protocol.times import format_time
from asya.protocol.triggers import Overlap, Trigger, TriggerBatch

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


@pytest.mark.rule("16.window.overlap", "16.overlap.cancel-previous")
def test_16_a_window_that_closes_starts_its_task_as_the_overlap_says() -> None:
    due = window("debounce")

    def after(overlap: Overlap, running: str | None) -> Lane:
        change = settle(Lane(running=running, window=due), replace(DEBOUNCE, overlap=overlap), DUE, oldest=None)
        assert change is not None
        assert change.closed == due.start
        return change.lane

    assert after("allow", None) == Lane(starting=(due.start,))
    assert after("queue", "before") == Lane(running="before", queued=1)
    # The window was opened before a deployment: no occurrence of it is skipped.
    assert after("skip", "before") == Lane(running="before", queued=1)
    assert after("cancel-previous", "before") == Lane(running="t", starting=(due.start,), canceling=("before",))
