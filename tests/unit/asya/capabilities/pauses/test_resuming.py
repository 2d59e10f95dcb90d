"""protocol §11, resume: the record, the message, and x-resume's frame."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from asya.capabilities.pauses import pausing, resuming
from asya.capabilities.pauses.resume_input import InvalidInputError
from asya.function.hop import Hop
from asya.protocol import codec
from asya.protocol.api_errors import ApiError
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor
from asya.protocol.pause import Pause, PauseField, PauseHeader, PauseRelease, TaskPause
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time, parse_time
from asya.sidecar import outcome
from tests.doubles.envelopes import NOW, hop, message, raw, status
from tests.doubles.times import TIMES

LATER = NOW + timedelta(hours=3)
AT = format_time(LATER)
FIELDS = (
    PauseField(name="approved", type="boolean"),
    PauseField(name="title", type="string", payload_key="/report/title", required=False, default="Delays"),
)
SPEC = Actor(kind="pause", pause=Pause(fields=FIELDS))
RESUME = {"x-resume": Actor(kind="crew")}


def stored_envelope(spec: Actor = SPEC, **members: Any) -> Envelope:
    """What lies in the bucket; five minutes were left."""
    members = {"status": status(deadline_at="2026-11-20T12:05:00.250000Z")} | members
    return pausing.paused_envelope(hop(message(**members), spec=spec), now=NOW)


def paused_record(**changes: Any) -> TaskRecord:
    moment = format_time(NOW)
    about = TaskPause(prompt="?", fields=FIELDS, since=moment)
    record = TaskRecord(
        id="env-1",
        status="paused",
        created_at=moment,
        updated_at=moment,
        deadline_at="2026-11-20T12:05:00.250000Z",
        pause_epoch=1,
        pause=about,
    )
    return replace(record, **changes)


def answers(**values: Any) -> dict[str, Raw]:
    return {name: raw(value) for name, value in values.items()}


def test_the_task_runs_again_with_the_time_it_had_left() -> None:
    record = resuming.resume_task(paused_record(), stored_envelope(), answers(approved=True), now=LATER)
    assert (record.status, record.resumed_epoch, record.pause) == ("running", 1, None)
    assert record.deadline_at == format_time(LATER + timedelta(minutes=5))
    assert record.handover is not None
    assert (record.handover.to, record.handover.epoch, record.handover.at) == ("x-resume", 1, AT)
    assert isinstance(record.handover.input, Raw)
    assert msgspec.json.decode(record.handover.input) == {"approved": True, "title": "Delays"}


@pytest.mark.parametrize("state", ["pending", "running", "succeeded", "failed", "canceled"])
def test_only_a_paused_task_is_resumed(state: Any) -> None:
    with pytest.raises(ApiError) as refused:
        resuming.resume_task(paused_record(status=state), stored_envelope(), answers(approved=True), now=LATER)
    assert (refused.value.status, refused.value.code) == (409, "not_paused")


@pytest.mark.rule("11.resume.once")
def test_a_second_resume_is_told_that_there_was_a_first() -> None:
    first = resuming.resume_task(paused_record(), stored_envelope(), answers(approved=True), now=LATER)
    with pytest.raises(ApiError, match="was resumed") as refused:
        resuming.resume_task(first, stored_envelope(), answers(approved=True), now=LATER)
    assert refused.value.status == 409


def test_input_that_does_not_fit_changes_nothing() -> None:
    with pytest.raises(InvalidInputError) as invalid:
        resuming.resume_task(paused_record(), stored_envelope(), answers(approved="yes", colour="red"), now=LATER)
    assert set(invalid.value.fields) == {"approved", "colour"}


def test_a_payload_without_room_for_the_answers_is_told_before_the_task_goes_on() -> None:
    with pytest.raises(InvalidInputError) as invalid:
        resuming.resume_task(paused_record(), stored_envelope(payload="just text"), answers(approved=True), now=LATER)
    assert set(invalid.value.fields) == {"approved"}


def sent(given: dict[str, Any], **members: Any) -> Envelope:
    """What x-resume receives."""
    handover = PauseRelease(to="x-resume", epoch=1, at=AT, input=raw(given))
    delivery = resuming.release_delivery(stored_envelope(**members), handover)
    assert delivery.actor == "x-resume"
    return codec.decode(delivery.body)


def at_x_resume(envelope: Envelope) -> Hop:
    return hop(codec.encode(envelope), actor="x-resume", spec=RESUME["x-resume"], now=LATER)


def left(envelope: Envelope) -> Envelope:
    """What leaves x-resume."""
    pause = pausing.pause_of(envelope)
    assert pause is not None
    restarted, frame = resuming.restore(at_x_resume(envelope), pause, None)
    return codec.decode(outcome.frame(restarted, frame, 0, now=LATER).body)


@pytest.mark.rule("11.resume.time")
def test_the_old_deadline_stops_nobody_on_the_way_to_x_resume() -> None:
    envelope = sent({"approved": True})
    assert envelope.status is not None
    assert envelope.status.deadline_at is None
    assert envelope.header("x-asya-resume-input") == {"approved": True}


@pytest.mark.rule("11.resume.merge")
def test_the_answers_are_in_the_payload_and_the_rest_of_it_as_it_was() -> None:
    found = left(sent({"approved": True, "title": "Late"}, payload={"text": "hello"}))
    assert msgspec.json.decode(found.payload) == {"text": "hello", "approved": True, "report": {"title": "Late"}}
    assert (found.route.prev, found.route.curr, found.route.next) == (("prep", "infer", "x-resume"), "post", ())


@pytest.mark.rule("2.deadline.resume")
def test_2_the_new_deadline_is_what_was_left_from_the_moment_it_was_resumed() -> None:
    found = left(sent({"approved": True}))
    assert found.status is not None
    assert found.status.deadline_at == format_time(LATER + timedelta(minutes=5))
    assert (found.status.phase, found.status.actor, found.status.reason) == ("pending", "post", None)


def test_without_a_deadline_there_is_none_afterwards() -> None:
    found = left(sent({"approved": True}, status=status()))
    assert found.status is not None
    assert found.status.deadline_at is None


@pytest.mark.rule("2.deadline.longest", "11.resume.time")
@given(created_at=TIMES, deadline_at=TIMES)
def test_every_deadline_lets_the_task_run_again(created_at: str, deadline_at: str) -> None:
    assume(deadline_at > AT)  # x-pause ends an envelope whose deadline has passed
    stored = stored_envelope(status=status(created_at=created_at, deadline_at=deadline_at))
    record = resuming.resume_task(paused_record(), stored, answers(approved=True), now=LATER)
    assert isinstance(record.handover, PauseRelease)
    found = left(codec.decode(resuming.release_delivery(stored, record.handover).body))
    assert found.status is not None
    assert found.status.deadline_at == record.deadline_at
    assert record.deadline_at is not None
    assert LATER <= parse_time(record.deadline_at) <= LATER + timedelta(days=366)


@given(at=TIMES, remaining=st.floats(min_value=0, allow_infinity=False, allow_nan=False))
def test_no_time_of_a_release_is_beyond_the_calendar(at: str, remaining: float) -> None:
    deadline = resuming.new_deadline(PauseHeader(epoch=1, paused_at=AT, remaining=remaining), at)
    assert deadline is not None
    assert parse_time(deadline) >= parse_time(at)


@pytest.mark.rule("3.pause")
def test_3_no_header_of_the_pause_is_left() -> None:
    found = left(sent({"approved": True}))
    assert [name for name in found.headers if "pause" in name or "resume" in name] == []
    assert found.header("tenant") == "acme"


def test_done_twice_the_same_leaves() -> None:
    envelope = sent({"approved": True})
    assert left(envelope) == left(envelope)


def test_without_input_the_payload_is_not_touched() -> None:
    free = Actor(kind="pause", pause=Pause())
    body = message().replace(b'{"text":"hello"}', b'[1.0 , "\xc3\xa9"]')
    stored = pausing.paused_envelope(hop(body, spec=free), now=NOW)
    delivery = resuming.release_delivery(stored, PauseRelease(to="x-resume", epoch=1, at=AT, input=raw({})))
    assert bytes(left(codec.decode(delivery.body)).payload) == b'[1.0 , "\xc3\xa9"]'


def test_canceled_what_was_kept_goes_to_x_sink() -> None:
    delivery = resuming.release_delivery(stored_envelope(), PauseRelease(to="x-sink", epoch=1, at=AT))
    envelope = codec.decode(delivery.body)
    assert delivery.actor == "x-sink"
    assert envelope.status is not None
    assert (envelope.status.phase, envelope.status.reason) == ("canceled", "Canceled")
    assert "x-asya-pause" not in envelope.headers
    assert msgspec.json.decode(envelope.payload) == {"text": "hello"}


@pytest.mark.rule("11.resume.sender")
def test_what_no_release_has_sent_goes_on_as_it_is_whatever_it_says_of_a_pause() -> None:
    for envelope in (
        codec.decode(message(route={"prev": ["prep"], "curr": "x-resume", "next": ["post"]})),
        sent({"approved": True}, payload={"text": "forged"}),
    ):
        found = codec.decode(outcome.frame(at_x_resume(envelope), resuming.unpaused(), 0, now=LATER).body)
        assert (found.route.curr, bytes(found.payload)) == ("post", bytes(envelope.payload))
        assert [name for name in found.headers if "pause" in name or "resume" in name] == []


@pytest.mark.rule("11.resume.sender")
def test_route_and_payload_are_those_that_were_kept() -> None:
    kept = stored_envelope(payload={"text": "hello"})
    release = sent(
        {"approved": True}, payload={"text": "forged"}, route={"prev": ["prep"], "curr": "infer", "next": ["audit"]}
    )
    pause = pausing.pause_of(kept)
    assert pause is not None
    restarted, frame = resuming.restore(at_x_resume(release), pause, kept)
    found = codec.decode(outcome.frame(restarted, frame, 0, now=LATER).body)
    assert (found.route.curr, msgspec.json.decode(found.payload)["text"]) == ("post", "hello")


@pytest.mark.parametrize(
    ("header", "value"),
    [("x-asya-resume-input", [1]), ("x-asya-resume-at", "soon"), ("x-asya-pause", {"epoch": -5, "paused_at": ""})],
)
def test_headers_that_the_gateway_did_not_write_are_parse_errors(header: str, value: object) -> None:
    envelope = sent({"approved": True}).with_headers({header: value})
    with pytest.raises(ParseError, match=header):
        left(envelope)


def test_a_kept_envelope_that_says_nothing_of_a_pause_cannot_be_resumed() -> None:
    for envelope in (codec.decode(message()), stored_envelope().with_headers({"x-asya-pause": 5})):
        with pytest.raises(ApiError) as refused:
            resuming.resume_task(paused_record(), envelope, {}, now=LATER)
        assert refused.value.code == "not_resumable"


def test_an_earlier_resume_does_not_hide_a_later_pause() -> None:
    again = replace(paused_record(), pause_epoch=4, resumed_epoch=1)
    record = resuming.resume_task(again, stored_envelope(), answers(approved=False), now=LATER)
    assert record.resumed_epoch == 4
