"""When a wait asks again, and when it gives up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from asya.client.errors import (
    AccessDeniedError,
    MeshError,
    NotEndedError,
    NotFoundError,
    UnavailableError,
    UnreachableError,
)
from asya.client.patience import FIRST_PAUSE, LONGEST_PAUSE, RETRY_SECONDS, EventReader, Patience
from asya.tasks.view import TaskView
from tests.unit.asya.client.conftest import stream, task

if TYPE_CHECKING:
    from asya.client.patience import StreamPoll

GONE = UnreachableError("the gateway did not answer")
BUSY = UnavailableError("the gateway answered 503", status=503)
DENIED = AccessDeniedError("the gateway answered 403", status=403)


def view(status: str, **more: Any) -> TaskView:
    return msgspec.convert(task(status, **more), TaskView)


def test_a_long_wait_asks_less_often() -> None:
    patience = Patience("t1", 3600.0, 0.0)
    pauses = [patience.after(view("running"), now) for now in (0.0, 5.0, 20.0, 40.0, 3000.0)]
    assert pauses == [FIRST_PAUSE, FIRST_PAUSE, 1.0, LONGEST_PAUSE, LONGEST_PAUSE]
    assert patience.after(view("running"), 3599.5) == 0.5


@pytest.mark.parametrize("status", ["succeeded", "failed", "canceled", "paused"])
def test_a_wait_is_over_at_an_end_and_at_a_pause(status: str) -> None:
    patience = Patience("t1", 10.0, 0.0)
    assert patience.after(None, 1.0) is not None
    assert patience.after(view("unknown"), 2.0) is not None
    assert patience.after(view(status), 99.0) is None
    assert patience.view == view(status)


@pytest.mark.parametrize(
    ("poll", "state"), [(None, "no actor has received it"), (view("running", actor="bill"), "running at bill")]
)
def test_a_wait_has_a_limit(poll: TaskView | None, state: str) -> None:
    patience = Patience("t1", 10.0, 5.0)
    patience.after(poll, 14.9)
    with pytest.raises(NotEndedError, match=f"t1 has not ended after 10 s: {state}"):
        patience.after(poll, 15.0)


@pytest.mark.parametrize("error", [GONE, BUSY])
def test_what_may_pass_is_repeated_for_a_while_after_the_last_answer(error: MeshError) -> None:
    patience = Patience("t1", 3600.0, 0.0)
    assert patience.after(error, RETRY_SECONDS) is not None
    patience.after(view("running"), 100.0)
    assert patience.after(error, 100.0 + RETRY_SECONDS) is not None
    with pytest.raises(type(error)):
        patience.after(error, 100.1 + RETRY_SECONDS)


@pytest.mark.parametrize("error", [DENIED, MeshError("there are no AWS credentials")])
def test_what_would_fail_again_fails_at_once(error: MeshError) -> None:
    with pytest.raises(MeshError) as caught:
        Patience("t1", 3600.0, 0.0).after(error, 0.1)
    assert caught.value is error


def test_a_reader_goes_on_after_the_last_event() -> None:
    reader = EventReader("t1", 3600.0, 0.0)
    answers: list[StreamPoll] = [
        stream(("status", "a", {}), ("partial", "b", {})), GONE, b": keepalive\n\n", stream(("final", "c", {})),
    ]  # fmt: skip
    seen = [(len(reader.after(answer, 1.0)), reader.cursor, reader.is_over) for answer in answers]
    assert seen == [(2, "b", False), (0, "b", False), (0, "b", False), (1, "c", True)]


def test_a_reader_asks_at_once_after_events_and_later_without() -> None:
    reader = EventReader("t1", 3600.0, 0.0)
    reader.after(stream(("status", "a", {})), 1.0)
    assert reader.pause == 0.0
    reader.after(b": keepalive\n\n", 16.0)
    assert reader.pause > 0.0


def test_a_reader_ends_at_an_empty_answer() -> None:
    reader = EventReader("t1", 10.0, 0.0)
    assert reader.after(None, 99.0) == []
    assert reader.is_over


def test_a_reader_waits_for_the_record_and_not_for_one_that_is_gone() -> None:
    missing = NotFoundError("there is no task 't1'")
    reader = EventReader("t1", 100.0, 0.0)
    assert reader.after(missing, 50.0) == []
    assert reader.pause > 0.0
    reader.after(stream(("status", "a", {})), 51.0)
    with pytest.raises(NotFoundError):
        reader.after(missing, 52.0)


def test_a_reader_has_a_limit() -> None:
    reader = EventReader("t1", 10.0, 0.0)
    reader.after(stream(("status", "a", {})), 9.0)
    with pytest.raises(NotEndedError, match="it is at work or paused"):
        reader.after(b": keepalive\n\n", 24.0)


def test_a_reader_that_may_not_read_fails_at_once() -> None:
    with pytest.raises(AccessDeniedError):
        EventReader("t1", 10.0, 0.0).after(DENIED, 0.1)
