"""A task that runs again after an error says so, until the next attempt gives its first frame (`protocol §13.retry`)."""

import random
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from asya.protocol.events import TaskEvent
from asya.protocol.times import format_time
from asya.tasks.aws.tasks import Tasks
from asya.tasks.view import RetryView, TaskView, list_view
from tests.doubles.task_store import MemoryTaskStore
from tests.doubles.tasks import at, event, hop, retry_note


def failed_attempt(position: int, attempt: int, **more: object) -> list[TaskEvent]:
    """The reports of an attempt that fails and is retried a minute later for each number of it."""
    seconds = float(position * 10)
    return [
        event("t", "received", position, seconds, attempt=attempt, **more),
        event("t", "processing", position, seconds, attempt=attempt, **more),
        event("t", "processing", position, seconds + attempt, attempt=attempt, retry=retry_note(attempt), **more),
    ]


def view_of(*parts: Sequence[TaskEvent]) -> TaskView:
    """The view after all of the reports, in a random order and some of them twice."""
    chance = random.Random(7)
    views = []
    for _ in range(5):
        tasks = Tasks(MemoryTaskStore(86400.0), print, threaded=False)
        reports = [
            replace(each, data=replace(each.data, created_at=format_time(at(0)))) for part in parts for each in part
        ]
        reports += chance.sample(reports, len(reports) // 2)
        chance.shuffle(reports)
        while reports:
            size = chance.randint(1, 3)
            tasks.report(reports[:size], at(0), may_create=True)
            reports = reports[size:]
        view = tasks.read("t", at(0))
        assert view is not None
        views.append(view)
    assert all(view == views[0] for view in views)
    return views[0]


FAILED_TWICE = [*hop("t", 0), *failed_attempt(1, 1), *failed_attempt(1, 2)]
THIRD = hop("t", 1, attempt=3)


@pytest.mark.rule("13.retry", "13.retry.order", "13.order")
@pytest.mark.parametrize(
    ("reports", "attempt", "next_at"),
    [
        (failed_attempt(1, 1), 1, "2026-11-20T09:01:00.000000Z"),
        (FAILED_TWICE, 2, "2026-11-20T09:02:00.000000Z"),
        ([*FAILED_TWICE, THIRD[0]], 2, None),
        ([*FAILED_TWICE, *THIRD[:2]], 2, None),
        # Progress reports may be lost.
        (failed_attempt(1, 2)[2:], 2, "2026-11-20T09:02:00.000000Z"),
        ([*hop("t", 0), *failed_attempt(1, 2)[2:]], 2, "2026-11-20T09:02:00.000000Z"),
    ],
    ids=["first", "second", "received", "at work", "lost reports", "lost start"],
)
def test_13_a_running_task_shows_its_last_error_and_the_next_attempt(
    reports: list[TaskEvent], attempt: int, next_at: str | None
) -> None:
    view = view_of(reports)
    assert view.status == "running"
    assert view.retry is not None
    assert (view.retry.attempt, view.retry.max_attempts, view.retry.next_at) == (attempt, 5, next_at)
    assert (view.retry.error.type, view.retry.error.message) == ("ConnectionError", f"refused {attempt}")
    assert not view.retry.error.traceback
    assert view.error_group == "ConnectionError: refused #"
    assert view.updated_at >= view.retry.failed_at
    assert list_view(view).retry == view.retry


@pytest.mark.rule("13.retry", "13.order")
@pytest.mark.parametrize(
    "reports",
    [
        [*FAILED_TWICE, *THIRD],
        [*FAILED_TWICE, event("t", "received", 2, 40)],
        [*FAILED_TWICE, event("t", "failed", 1, 40, attempt=3, reason="PolicyExhausted")],
        [*FAILED_TWICE, event("t", "paused", 1, 40, attempt=3, prompt="?")],
        [*FAILED_TWICE, event("t", "canceled", 1, 40)],
        [*FAILED_TWICE, event("t", "paused", 0, 40, generation=1, prompt="?")],
        [*hop("t", 0), *hop("t", 1)],
    ],
    ids=["succeeded", "at the next hop", "failed", "paused", "canceled", "another generation", "never failed"],
)
def test_13_a_retry_is_over_once_the_next_attempt_gives_a_frame_or_the_task_ends(reports: list[TaskEvent]) -> None:
    assert view_of(reports).retry is None


@pytest.mark.rule("13.retry")
def test_13_the_longest_error_fits_into_the_record() -> None:
    note = retry_note(1)
    view = view_of([event("t", "processing", retry=replace(note, error=replace(note.error, message="x" * 9000)))])
    assert isinstance(view.retry, RetryView)
    assert len(view.retry.error.message) == 1024
