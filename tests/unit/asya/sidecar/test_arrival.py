"""protocol §5, steps 1 to 6: the checks before the handler call."""

import base64
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from asya.function.hop import Diversion, Hop
from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor, Policy, Resiliency
from asya.protocol.times import format_time
from asya.sidecar import arrival
from asya.tasks.task_state import TaskState
from tests.doubles.envelopes import NOW, SENT_AT, SPAN, arrival_of, mesh, message, status


def at(seconds: float) -> str:
    return format_time(NOW + timedelta(seconds=seconds))


def receive(body: bytes, actor: str = "infer", **options: Any) -> Hop | Diversion:
    return arrival.receive(arrival_of(body), actor=actor, mesh=mesh(**options), now=NOW)


def start(body: bytes, state: TaskState | None = None, actor: str = "infer", **options: Any) -> Hop | Diversion:
    received = receive(body, actor, **options)
    if isinstance(received, Diversion):
        return received
    return arrival.start(received, state, now=NOW, new_span=lambda: SPAN)


def diverted(found: Hop | Diversion, end: str, why: str) -> Envelope:
    """The one envelope that a diversion sends to an end."""
    assert isinstance(found, Diversion)
    assert found.why == why
    (delivery,) = found.deliveries
    assert delivery.actor == end
    envelope = decode(delivery.body)
    assert envelope.id == found.envelope_id
    return envelope


def went_on(found: Hop | Diversion) -> Hop:
    assert isinstance(found, Hop), found
    return found


def error_of(envelope: Envelope) -> tuple[Any, ...]:
    assert envelope.status is not None
    assert envelope.status.error is not None
    return envelope.status.phase, envelope.status.reason, envelope.status.error.type, envelope.status.error.message


# --- step 1


@pytest.mark.rule("5.1")
def test_5_1_what_cannot_be_parsed_goes_to_x_sump_whole_under_the_id_it_has() -> None:
    body = message(payload=...)
    envelope = diverted(receive(body), "x-sump", "ParseError")
    problem = "Failed to parse message: payload is missing"
    assert envelope.id == "env-1"
    assert (envelope.route.prev, envelope.route.curr, envelope.route.next) == ((), "x-sump", ())
    assert msgspec.json.decode(envelope.payload) == {
        "error": problem,
        "original_message": body.decode(),
        "encoding": "utf-8",
    }
    assert error_of(envelope) == ("failed", "ParseError", "ParseError", problem)
    assert envelope.status is not None
    assert envelope.status.created_at == format_time(SENT_AT)


@pytest.mark.rule("5.1.id")
@pytest.mark.parametrize("body", [b"junk", message(id=...), message(id="x" * 300), b"[]"])
def test_5_1_without_a_usable_id_it_gets_one_from_the_sqs_message_id(body: bytes) -> None:
    envelope = diverted(receive(body), "x-sump", "ParseError")
    assert envelope.id == ids.id_of_message(arrival_of(body).message_id)
    assert envelope == diverted(receive(body), "x-sump", "ParseError")


@pytest.mark.rule("5.1")
def test_5_1_what_is_not_utf_8_travels_in_base64() -> None:
    body = b'{"id": "\xff\xfe"}'
    payload = msgspec.json.decode(diverted(receive(body), "x-sump", "ParseError").payload)
    assert payload["encoding"] == "base64"
    assert base64.b64decode(payload["original_message"]) == body


@pytest.mark.rule("5.1.headers")
def test_5_1_headers_that_can_be_read_go_along_but_for_the_reference_to_a_payload() -> None:
    known = {"x-asya-generation": 2, "mine": [1.50], "x-asya-payload-ref": {"key": "elsewhere"}}
    bad = message(payload=..., headers=known)[:-1].replace(b'"mine"', b'"large":1e999,"mine"') + b"}"
    envelope = diverted(receive(bad), "x-sump", "ParseError")
    assert {name: bytes(raw) for name, raw in envelope.headers.items()} == {
        "x-asya-generation": b"2",
        "mine": b"[1.5]",
    }
    assert envelope.generation == 2


@pytest.mark.rule("5.1.headers")
@pytest.mark.parametrize("headers", [b"[]", b"7", b'"x"', b"null", b'{"a": "\xff"}', rb'{"a": "\udc00"}'])
def test_5_1_headers_that_cannot_be_read_stay_behind(headers: bytes) -> None:
    bad = message(route=..., headers=...)[:-1] + b',"headers":' + headers + b"}"
    assert diverted(receive(bad), "x-sump", "ParseError").headers == {}


# --- step 2


@pytest.mark.rule("3.not-before", "5.2")
@pytest.mark.parametrize(("ahead", "delay"), [(0.2, 1), (30.5, 31), (900, 900), (901, 900), (86_400, 900)])
def test_5_2_not_due_yet_is_sent_again_unchanged_without_a_hop(ahead: float, delay: int) -> None:
    body = message(headers={"x-asya-not-before": at(ahead)}, unknown="kept")
    found = receive(body)
    assert isinstance(found, Diversion)
    (delivery,) = found.deliveries
    assert (delivery.actor, delivery.delay, delivery.kind) == ("infer", delay, "later")
    assert delivery.body == body


@pytest.mark.rule("5.2.as-due-now")
@pytest.mark.parametrize("value", [at(0), at(-5), at(86_401), "soon", 5, None, {}])
def test_5_2_due_too_far_ahead_or_no_time_is_as_due_now(value: Any) -> None:
    hop = went_on(start(message(headers={"x-asya-not-before": value})))
    assert "x-asya-not-before" not in hop.envelope.headers


@pytest.mark.rule("5.2.as-due-now")
def test_5_2_past_the_deadline_is_as_due_now() -> None:
    headers = {"x-asya-not-before": at(60)}
    went_on(receive(message(headers=headers, status=status(deadline_at=at(59)))))
    assert isinstance(receive(message(headers=headers, status=status(deadline_at=at(61)))), Diversion)


# --- step 3


@pytest.mark.rule("5.3")
@pytest.mark.parametrize("left", [-60, 0, 0.999])
def test_5_3_a_passed_deadline_goes_to_x_sink_untouched(left: float) -> None:
    body = message(status=status(deadline_at=at(left)), payload={"big": [1.10, "ü"]})
    envelope = diverted(start(body), "x-sink", "SlaExpired")
    *kinds, words = error_of(envelope)
    assert kinds == ["failed", "Timeout", "Timeout"]
    assert words.startswith(f"Deadline {at(left)} passed before infer started, ")
    assert words.endswith(" after the start of the task; start it with a later one")
    assert bytes(envelope.payload) == bytes(decode(body).payload)
    assert envelope.route == decode(body).route
    assert envelope.status is not None
    assert envelope.status.actor == "infer"


@pytest.mark.rule("5.3")
def test_5_3_a_second_left_is_enough() -> None:
    assert isinstance(start(message(status=status(deadline_at=at(1)))), Hop)


def test_5_3_the_deadline_is_looked_at_again_when_its_turn_comes() -> None:
    received = receive(message(status=status(deadline_at=at(20))))
    assert isinstance(received, Hop)
    late = arrival.start(received, None, now=NOW + timedelta(seconds=25), new_span=lambda: SPAN)
    diverted(late, "x-sink", "SlaExpired")


# --- step 4


@pytest.mark.rule("5.4", "9.cancel-root")
@pytest.mark.parametrize(
    "state",
    [TaskState(id="env-1", status="canceled"), TaskState(id="env-1", status="running", root_status="canceled")],
)
def test_5_4_canceled_itself_or_by_its_root(state: TaskState) -> None:
    envelope = diverted(start(message(), state), "x-sink", "Canceled")
    assert envelope.status is not None
    assert (envelope.status.phase, envelope.status.reason) == ("canceled", "Canceled")
    assert envelope.route == decode(message()).route
    assert bytes(envelope.payload) == bytes(decode(message()).payload)


@pytest.mark.rule("5.4.late-copies")
@pytest.mark.parametrize("word", ["paused", "running", "succeeded", "failed"])
@pytest.mark.parametrize(("epoch", "is_late"), [(None, False), (0, False), (1, True), (7, True)])
def test_5_4_a_hop_up_to_the_pause_is_a_late_copy(word: str, epoch: int | None, is_late: bool) -> None:
    state = TaskState(id="env-1", status=word, pause_epoch=epoch)
    assert went_on(start(message(), state)).is_late_copy == is_late
    assert not went_on(start(message(), replace(state, generation=1))).is_late_copy


@pytest.mark.rule("5.4.late-copies")
def test_5_4_the_deadline_of_a_late_copy_is_void() -> None:
    late = message(status=status(deadline_at=at(-60)))
    assert went_on(start(late, TaskState(id="env-1", status="paused", pause_epoch=1))).deadline is None
    diverted(start(late, TaskState(id="env-1", status="paused", pause_epoch=0)), "x-sink", "SlaExpired")


@pytest.mark.rule("5.4.late-copies")
@pytest.mark.parametrize("state", [{"status": "canceled"}, {"status": "paused", "root_status": "canceled"}])
def test_5_4_a_late_copy_of_a_canceled_task_ends_nothing(state: dict[str, str]) -> None:
    stopped = start(message(), TaskState(id="env-1", pause_epoch=1, **state))
    assert isinstance(stopped, Diversion)
    assert (stopped.why, stopped.deliveries) == ("LateCopy", ())


@pytest.mark.rule("5.4.at-the-pause")
@pytest.mark.parametrize(("epoch", "goes_on"), [(0, False), (1, True)])
def test_5_4_a_pause_actor_at_its_own_epoch_has_no_deadline(epoch: int, goes_on: bool) -> None:
    late = message(status=status(deadline_at=at(-60)))
    found = start(
        late, TaskState(id="env-1", status="running", pause_epoch=epoch), actors={"infer": Actor(kind="pause")}
    )
    if goes_on:
        assert not went_on(found).is_late_copy
    else:
        diverted(found, "x-sink", "SlaExpired")


@pytest.mark.rule("5.4.go-on")
@pytest.mark.parametrize("word", ["unknown", "pending", "running", "succeeded", "failed"])
def test_5_4_every_other_state_goes_on(word: str) -> None:
    went_on(start(message(), TaskState(id="env-1", status=word)))
    went_on(start(message(), TaskState(id="env-1", status="running", root_status="paused")))


@pytest.mark.rule("5.4.registered")
def test_5_4_only_an_envelope_without_a_status_registers() -> None:
    assert went_on(receive(message(status=...))).needs_registration
    assert went_on(receive(message(status={}))).needs_registration
    assert went_on(receive(message(status=None))).needs_registration
    assert not went_on(receive(message())).needs_registration
    assert not went_on(receive(message(status={"phase": "pending"}))).needs_registration


# --- step 5


@pytest.mark.rule("5.5")
@pytest.mark.parametrize(
    ("curr", "error"),
    [("post", "route.curr is 'post', but the message lay on the queue of 'infer'"), ("", "the route is at its end")],
)
def test_5_5_not_this_actors_turn_goes_to_x_sump(curr: str, error: str) -> None:
    envelope = diverted(start(message(route={"prev": ["prep"], "curr": curr, "next": []})), "x-sump", "RouteMismatch")
    phase, reason, _, text = error_of(envelope)
    assert (phase, reason) == ("failed", "RouteMismatch")
    assert error in text
    assert envelope.route.curr == curr


@pytest.mark.rule("5.5")
def test_5_5_overrides_are_heeded() -> None:
    headers = {"x-asya-route-override": {"infer": "rescue"}}
    went_on(start(message(headers=headers), actor="rescue"))
    diverted(start(message(headers=headers), actor="infer"), "x-sump", "RouteMismatch")
    end = {"prev": ["prep"], "curr": "", "next": []}
    diverted(start(message(route=end, headers={"x-asya-route-override": {"": "infer"}})), "x-sump", "RouteMismatch")


@pytest.mark.rule("1.max_hops")
@pytest.mark.parametrize(("done", "limit", "stops"), [(3, 4, False), (4, 4, True), (5, 4, True)])
def test_1_max_hops(done: int, limit: int, stops: bool) -> None:
    found = start(message(route={"prev": ["prep"] * done, "curr": "infer", "next": []}), max_hops=limit)
    if not stops:
        went_on(found)
        return
    envelope = diverted(found, "x-sump", "MaxHops")
    assert error_of(envelope)[1] == "MaxHops"
    assert f"{done} hops done; this mesh allows {limit}" in error_of(envelope)[3]


# --- step 6


@pytest.mark.rule("2.start", "5.6")
def test_5_6_status_and_headers_are_stamped() -> None:
    hop = went_on(start(message()))
    assert hop.status.phase == "processing"
    assert (hop.status.actor, hop.status.attempt, hop.status.updated_at) == ("infer", 1, at(0))
    assert hop.envelope.header("x-asya-first-attempt") == at(0)
    assert str(hop.envelope.header("traceparent")).split("-")[2] == SPAN
    assert hop.envelope.header("tenant") == "acme"


@pytest.mark.rule("3.first-attempt")
def test_3_the_first_attempt_is_kept_across_retries_only() -> None:
    first = "2026-11-20T11:00:00Z"
    headers = {"x-asya-first-attempt": first}
    retried = went_on(start(message(headers=headers, status=status(phase="retrying", attempt=2))))
    assert retried.envelope.header("x-asya-first-attempt") == "2026-11-20T11:00:00.000000Z"
    assert retried.attempt == 2
    fresh = went_on(start(message(headers=headers, status=status(attempt=2))))
    assert fresh.envelope.header("x-asya-first-attempt") == at(0)
    for broken in ("long ago", 5, None):
        headers = {"x-asya-first-attempt": broken}  # type: ignore[dict-item]
        hop = went_on(start(message(headers=headers, status=status(phase="retrying", attempt=2))))
        assert hop.envelope.header("x-asya-first-attempt") == at(0)


@pytest.mark.rule("3.times", "8.max_duration")
@pytest.mark.parametrize("written", ["9999-12-31T23:59:59.999999Z", at(0.001), at(86_400)])
@pytest.mark.parametrize("created", [at(-600), at(86_400), "9999-12-31T23:59:59.999999Z"])
def test_3_times_no_attempt_was_in_the_future(written: str, created: str) -> None:
    """An earlier holder of the task writes all times of a retry, that of the creation too."""
    for moment, counts in ((written, at(0)), (at(-1), at(-1)), ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z")):
        before = status(phase="retrying", attempt=2, created_at=created)
        hop = went_on(start(message(headers={"x-asya-first-attempt": moment}, status=before)))
        assert hop.envelope.header("x-asya-first-attempt") == counts


@pytest.mark.rule("2.retry")
def test_2_max_attempts_are_those_of_the_default_policy_or_of_the_retry() -> None:
    spec = Actor(kind="handler", resiliency=Resiliency(policies={"default": Policy(max_attempts=4)}))
    table = mesh({"infer": spec})
    for body, expected in ((message(), 4), (message(status=status(phase="retrying", attempt=2, max_attempts=9)), 9)):
        found = arrival.receive(arrival_of(body), actor="infer", mesh=table, now=NOW)
        assert isinstance(found, Hop)
        assert went_on(arrival.start(found, None, now=NOW, new_span=lambda: SPAN)).status.max_attempts == expected


@pytest.mark.rule("5.7")
def test_5_7_the_time_limit_is_the_shorter_of_timeout_and_deadline() -> None:
    own = went_on(start(message(status=status(deadline_at=at(3600)))))
    assert own.time_limit(NOW) == (timedelta(seconds=30), False)
    hurried = went_on(start(message(status=status(deadline_at=at(10)))))
    assert hurried.time_limit(NOW) == (timedelta(seconds=10), True)
    assert went_on(start(message())).time_limit(NOW) == (timedelta(seconds=30), False)
