"""protocol §12, redrive: when a task may be reopened, and the envelope that is sent."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from asya.capabilities.dead_letters import redrive
from asya.capabilities.dead_letters.letters import DeadLetter
from asya.capabilities.dead_letters.redrive import Reopening, SliceOf
from asya.capabilities.fan_in.sets import Decision, SetState
from asya.function.hop import Arrival
from asya.protocol.api_errors import ApiError
from asya.protocol.codec import decode, encode
from asya.protocol.envelope import GENERATION_LIMIT, Envelope
from asya.protocol.hops import HopFold, fold, hop_records
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from tests.doubles.envelopes import NOW, message, status
from tests.doubles.tasks import event

ERROR = {"type": "ValueError", "message": "bad", "mro": [], "traceback": ""}


def record(state: Any = "failed", generation: int = 0, **more: Any) -> TaskRecord:
    return TaskRecord(id="t", status=state, generation=generation, created_at="a", updated_at="a", **more)


def reached(position: int, generation: int = 0) -> HopFold:
    return fold(hop_records([event("t", "received", position, generation=generation)]), generation)


NOWHERE = HopFold(0)
SENT = NOW - timedelta(hours=1)


def letter(envelope: Envelope) -> DeadLetter:
    return DeadLetter(Arrival(encode(envelope), "m-1", SENT, sender="AIDABOB"), "infer", envelope)


@pytest.mark.parametrize("state", ["failed", "pending", "running"])
def test_a_task_whose_end_the_dead_letter_was_is_reopened(state: str) -> None:
    opened = redrive.reopen(record(state), reached(1), Reopening(position=1), now=NOW)
    assert (opened.status, opened.generation, opened.updated_at) == ("pending", 1, format_time(NOW))
    assert [each.status for each in opened.earlier] == [state]


@pytest.mark.rule("12.refused")
@pytest.mark.parametrize(
    ("state", "position", "code"),
    [
        ("succeeded", 1, "succeeded"),
        ("canceled", 1, "canceled"),
        ("paused", 1, "paused"),
        ("running", 2, "running"),
    ],
)
def test_what_is_better_left_alone_takes_force(state: str, position: int, code: str) -> None:
    asked = Reopening(position=1)
    with pytest.raises(ApiError) as refused:
        redrive.reopen(record(state), reached(position), asked, now=NOW)
    assert (refused.value.status, refused.value.code) == (409, code)
    forced = redrive.reopen(record(state), reached(position), Reopening(position=1, force=True), now=NOW)
    assert (forced.status, forced.generation) == ("pending", 1)


def test_a_deadline_that_has_passed_is_for_a_replay_force_or_not() -> None:
    late = record(deadline_at=format_time(NOW - timedelta(seconds=1)))
    for force in (False, True):
        with pytest.raises(ApiError, match="replay it") as refused:
            redrive.reopen(late, NOWHERE, Reopening(force=force), now=NOW)
        assert refused.value.code == "deadline_passed"
    in_time = record(deadline_at=format_time(NOW + timedelta(seconds=60)))
    assert redrive.reopen(in_time, NOWHERE, Reopening(), now=NOW).generation == 1


@pytest.mark.parametrize("state", ["pending", "running", "paused"])
def test_done_again_after_a_death_nothing_is_opened_twice(state: str) -> None:
    opened = record(state, 1)
    assert redrive.reopen(opened, reached(2, 1), Reopening(generation=0, position=1), now=NOW) is opened


@pytest.mark.rule("12.refused")
@pytest.mark.parametrize("state", ["pending", "running", "failed"])
def test_an_older_letter_does_not_take_over_what_another_one_has_begun(state: str) -> None:
    """Who has held a task in an earlier generation may put it into its own dead-letter queue, at any position."""
    first = redrive.reopen(record(), NOWHERE, Reopening(letter="m-1"), now=NOW)
    begun = replace(first, status=state)
    with pytest.raises(ApiError) as refused:
        redrive.reopen(begun, reached(2, 1), Reopening(position=99, letter="m-2"), now=NOW)
    assert (refused.value.status, refused.value.code) == (409, "redriven")
    forced = redrive.reopen(begun, reached(2, 1), Reopening(letter="m-2", force=True), now=NOW)
    assert (forced.generation, forced.letter) == (2, "m-2")
    again = redrive.reopen(begun, reached(2, 1), Reopening(letter="m-1"), now=NOW)
    assert again.generation == (2 if state == "failed" else 1)


def test_the_generation_is_above_all_there_have_been() -> None:
    assert redrive.reopen(record("failed", 3), NOWHERE, Reopening(generation=1), now=NOW).generation == 4
    assert redrive.reopen(record("failed", 0), NOWHERE, Reopening(generation=5), now=NOW).generation == 6


def test_generations_end_somewhere() -> None:
    with pytest.raises(ApiError, match="redriven 9999 times"):
        redrive.reopen(record("failed", GENERATION_LIMIT), NOWHERE, Reopening(), now=NOW)


def a_set(how: Any = None, *, delivered: bool = False) -> SetState:
    decision = Decision(how=how, at="a") if how else None
    return SetState(3, frozenset(), frozenset(), NOW, decision, delivered)


def a_slice(index: int) -> SliceOf:
    return SliceOf("s", index, "origin")


@pytest.mark.parametrize("index", [0, 2])
def test_a_slice_of_an_open_set_may_come(index: int) -> None:
    redrive.check_set_is_open(a_slice(index), a_set())
    redrive.check_set_is_open(a_slice(index), None)


@pytest.mark.rule("12.refused")
@pytest.mark.parametrize("how", ["merged", "failed", "canceled", "gone"])
def test_a_slice_of_a_closed_set_is_refused_and_its_origin_named(how: str) -> None:
    with pytest.raises(ApiError, match="replay its origin 'origin'") as refused:
        redrive.check_set_is_open(a_slice(2), a_set(how))
    assert refused.value.code == "set_closed"


def test_the_origin_is_awaited_until_it_has_left() -> None:
    redrive.check_set_is_open(a_slice(0), a_set("failed"))
    for state in (a_set("failed", delivered=True), a_set("gone")):
        with pytest.raises(ApiError):
            redrive.check_set_is_open(a_slice(0), state)


def test_the_same_hop_is_sent_in_the_new_generation_from_its_first_attempt() -> None:
    first = {"x-asya-first-attempt": "2026-11-20T11:00:00Z", "x-asya-not-before": "2026-11-20T11:00:00Z"}
    was = decode(
        message(
            headers={"tenant": "acme", "traceparent": "00-x", "x-asya-generation": 1, **first},
            status=status(phase="retrying", attempt=3, max_attempts=5, error=ERROR, deadline_at="2026-11-21T00:00:00Z"),
        )
    )
    sent = decode(encode(redrive.redriven_envelope(letter(was), was, 2, now=NOW)))
    assert (sent.id, sent.route, sent.payload, sent.generation) == (was.id, was.route, was.payload, 2)
    assert set(sent.headers) == {"tenant", "traceparent", "x-asya-generation"}
    assert sent.status is not None
    assert (sent.status.phase, sent.status.attempt, sent.status.error) == ("pending", 1, None)
    assert (sent.status.created_at, sent.status.deadline_at) == ("2026-11-20T11:59:00.000000Z", "2026-11-21T00:00:00Z")


def test_the_error_that_a_then_route_handler_is_to_read_stays() -> None:
    was = decode(message(status=status(reason="PolicyRouted", error=ERROR)))
    sent = redrive.redriven_envelope(letter(was), was, 1, now=NOW)
    assert sent.status is not None
    assert sent.status.reason == "PolicyRouted"
    assert sent.status.error is not None


@pytest.mark.rule("12.redrive.sender")
def test_an_envelope_without_status_gets_its_first_one_and_the_owner_that_sent_it() -> None:
    was = decode(message(status=..., headers={"x-asya-owner": "AIDAMALLORY"}))
    sent = redrive.redriven_envelope(letter(was), was, 1, now=NOW)
    assert sent.status is not None
    assert (sent.status.phase, sent.status.actor, sent.status.created_at) == ("pending", "infer", format_time(SENT))
    assert sent.header("x-asya-owner") == "AIDABOB"


@pytest.mark.parametrize(
    ("phase", "rests"), [("succeeded", True), ("failed", True), ("paused", True), ("pending", False), (..., False)]
)
def test_only_the_end_of_what_has_ended_is_still_to_be_written(phase: Any, rests: bool) -> None:
    body = message(status=...) if phase is ... else message(status=status(phase=phase))
    assert redrive.is_at_rest(decode(body)) is rests


def test_a_slice_names_its_place_in_the_set() -> None:
    header = {"actor": "f", "set_id": "s", "origin_id": "o", "slice_index": 1, "slice_count": 2, "aggregation_key": ""}
    asked = redrive.reopening_of(decode(message(headers={"x-asya-fan-in": header})), "m-1", force=True)
    assert asked == Reopening(0, 1, SliceOf("s", 1, "o"), "m-1", force=True)


@pytest.mark.parametrize("header", [None, {"set_id": "s"}])
def test_without_a_readable_slice_header_there_is_no_place(header: object) -> None:
    headers = {"x-asya-fan-in": header} if header else {}
    assert redrive.reopening_of(decode(message(headers=headers)), "m-1", force=False).slice is None
