"""protocol §5.13, §6, §11: how a dead letter's envelope ends."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from asya.capabilities.dead_letters import letters as dead_letters
from asya.capabilities.dead_letters.letters import LetterEnd
from asya.protocol import ids
from asya.protocol.hops import HopRecord
from asya.protocol.mesh_table import Actor
from asya.protocol.slices import SetDue, decode_message, encode_message
from asya.protocol.task import TaskRecord
from tests.doubles.envelopes import NOW, arrival_of, mesh, message, status
from tests.doubles.tasks import route_at

MESH = mesh({"infer": Actor(kind="handler", max_receives=3), "x-fan-in": Actor(kind="fan_in")})
ERROR = {"type": "ValueError", "message": "bad", "mro": [], "traceback": ""}
SLICE = {
    "actor": "x-fan-in",
    "set_id": "set-1",
    "origin_id": "origin",
    "slice_index": 2,
    "slice_count": 3,
    "aggregation_key": "/results",
}


def ended(body: bytes, *, actor: str = "infer", frame_left: bool = False, **more: Any) -> LetterEnd | None:
    letter = dead_letters.read_letter(arrival_of(body, **more), actor)
    return dead_letters.letter_end(letter, MESH, frame_left=frame_left, now=NOW)


@pytest.mark.rule("5.13")
def test_an_envelope_on_its_way_failed_for_want_of_deliveries() -> None:
    found = ended(message(status=status(phase="retrying", attempt=2, error=ERROR)))
    assert found is not None
    assert found.event is not None
    event = found.event
    assert (event.id, event.status, event.position, event.attempt) == ("env-1", "failed", 1, 2)
    assert (event.data.reason, event.data.actor, event.data.owner) == ("DeliveryExhausted", "infer", None)
    assert event.data.error is not None
    assert event.data.error.type == "DeliveryExhausted"
    assert event.data.error.message == (
        "infer did not finish with the message in 180 deliveries; it lies in asya-shop-infer-dlq"
    )
    assert found.deliveries == ()


@pytest.mark.parametrize(("phase", "reason"), [("failed", "Timeout"), ("canceled", "Canceled")])
def test_an_envelope_that_has_ended_is_reported_as_it_ended(phase: str, reason: str) -> None:
    found = ended(message(status=status(phase=phase, reason=reason)), actor="x-sink")
    assert found is not None
    assert found.event is not None
    assert (found.event.status, found.event.data.reason) == (phase, reason)


def test_a_result_is_told_inline_as_x_sink_would_have() -> None:
    found = ended(message(status=status(phase="succeeded", reason="Completed")), actor="x-sink")
    assert found is not None
    assert found.event is not None
    assert found.event.data.result == msgspec.Raw(b'{"text":"hello"}')


def test_a_payload_that_waits_in_s3_is_not_taken_for_the_result_null() -> None:
    body = message(
        status=status(phase="succeeded"),
        payload=None,
        headers={"x-asya-payload-ref": {"key": "payloads/a", "size": 1, "sha256": "0"}},
    )
    found = ended(body, actor="x-sink")
    assert found is not None
    assert found.event is not None
    assert found.event.data.result is UNSET


def test_what_only_rests_has_not_ended() -> None:
    found = ended(message(status=status(phase="paused")), actor="x-sink")
    assert found is not None
    assert (found.event, found.deliveries) == (None, ())


def test_nobody_has_registered_an_envelope_without_status_so_its_owner_is_told() -> None:
    found = ended(message(status=...), sender="AIDAALICE")
    assert found is not None
    assert found.event is not None
    assert (found.event.data.owner, found.event.data.reason) == ("AIDAALICE", "DeliveryExhausted")


@pytest.mark.parametrize("body", [b"junk", b"\xff", b'{"route": {}}'])
def test_what_cannot_be_read_is_reported_under_an_id_made_from_the_messages(body: bytes) -> None:
    found = ended(body, message_id="message-7")
    assert found is not None
    assert found.event is not None
    assert (found.event.id, found.event.data.reason) == (ids.id_of_message("message-7"), "DeliveryExhausted")
    assert found.event.data.error is not None
    assert "and it is not a valid envelope" in found.event.data.error.message


def test_what_cannot_be_read_but_has_a_usable_id_is_reported_under_that() -> None:
    found = ended(b'{"id": "env-9", "route": 5, "payload": 1}')
    assert found is not None
    assert found.event is not None
    assert found.event.id == "env-9"


def test_requests_events_and_words_about_sets_are_about_no_task() -> None:
    assert ended(b'{"actor": "crunch"}', actor="x-dispatch") is None
    assert ended(b'{"detail": {}}', actor="x-completion") is None
    assert ended(encode_message(SetDue(set_id="set-1")), actor="x-fan-in") is None


def test_the_set_of_a_slice_is_told() -> None:
    found = ended(message(headers={"x-asya-fan-in": SLICE}))
    assert found is not None
    (delivery,) = found.deliveries
    told = decode_message(delivery.body)
    assert told is not None
    assert (delivery.actor, told.set_id) == ("x-fan-in", "set-1")
    assert msgspec.to_builtins(told)["reason"] == "DeliveryExhausted"


@pytest.mark.rule("6.streamed")
def test_once_the_first_frame_has_left_a_child_failed_and_no_set_is_told() -> None:
    body = message(headers={"x-asya-fan-in": SLICE, "x-asya-root": "root", "x-asya-generation": 1})
    found = ended(body, frame_left=True)
    assert found is not None
    assert found.event is not None
    assert found.event.id == ids.child_id("env-1", 1, 1, "error")
    assert (found.event.parent_id, found.event.root_id, found.event.generation) == ("env-1", "root", 1)
    assert (found.event.status, found.event.data.reason) == ("failed", "DeliveryExhausted")
    assert found.deliveries == ()


def part(position: int, generation: int = 0) -> HopRecord:
    return HopRecord(
        id="env-1",
        generation=generation,
        position=position,
        attempt=1,
        stage="received",
        actor="post",
        percent=5,
        at="2026-11-20T12:00:00.000000Z",
    )


@pytest.mark.parametrize(
    ("latest", "expected"),
    [(None, False), (part(0), False), (part(1), False), (part(2), True)],
)
def test_the_id_went_on_if_a_later_hop_is_known(latest: HopRecord | None, expected: bool) -> None:
    record = TaskRecord(id="env-1", status="running", created_at="a", updated_at="a")
    envelope = dead_letters.read_letter(arrival_of(message()), "infer").envelope
    assert envelope is not None
    assert dead_letters.has_left(envelope, record, latest) is expected
    assert dead_letters.has_left(envelope, None, latest) is False


def test_the_id_went_on_if_the_task_ended_later() -> None:
    envelope = dead_letters.read_letter(arrival_of(message()), "infer").envelope
    assert envelope is not None
    done = TaskRecord(id="env-1", status="succeeded", created_at="a", updated_at="a", route=route_at(3))
    here = TaskRecord(id="env-1", status="failed", created_at="a", updated_at="a", route=route_at(1))
    again = TaskRecord(id="env-1", status="running", created_at="a", updated_at="a", generation=1)
    assert dead_letters.has_left(envelope, done, None)
    assert not dead_letters.has_left(envelope, here, None)
    assert not dead_letters.has_left(envelope, again, part(5, 1))


def test_every_queue_is_watched() -> None:
    assert dead_letters.watched_actors(mesh()) == ("infer", "post", "prep", "rescue", "x-sink", "x-sump")
    heavy = mesh({"crunch": Actor(kind="spark")})
    assert {"crunch", "x-dispatch", "x-completion"} <= set(dead_letters.watched_actors(heavy))


@pytest.mark.rule("16.failures")
def test_16_a_letter_that_x_triggers_gave_up_says_why() -> None:
    assert dead_letters.read_letter(arrival_of(b"{}"), "x-triggers", "no trigger").problem == "no trigger"


@pytest.mark.rule("4.starts.end", "5.13")
def test_4_a_letter_that_its_function_gave_up_says_why() -> None:
    letter = dead_letters.read_letter(arrival_of(message()), "infer", "5 starts did not come to an end")
    found = dead_letters.letter_end(letter, MESH, frame_left=False, now=NOW)
    assert found is not None
    assert found.event is not None
    assert found.event.data.error is not None
    assert found.event.data.error.message == (
        "infer did not finish with the message: 5 starts did not come to an end; it lies in asya-shop-infer-dlq"
    )
    assert found.event.data.provisional


@pytest.mark.rule("4.starts.judged")
def test_4_what_a_sender_outside_writes_beside_a_letter_does_not_count() -> None:
    arrival = msgspec.structs.replace(arrival_of(message()), is_new=True)
    assert dead_letters.read_letter(arrival, "infer", "5 starts did not come to an end").problem is None
