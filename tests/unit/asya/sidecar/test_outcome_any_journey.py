"""Payloads, headers and routes on any way through the mesh (protocol §1).

Unchanged payloads and headers keep their bytes, what handlers pass on keeps its value, and only the shift moves a route.
"""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from asya.function.hop import Delivery, Diversion, Hop
from asya.function.targets import TargetError
from asya.light.envelope_view import envelope_view
from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope, Frame, Route
from asya.protocol.errors import ErrorInfo
from asya.protocol.headers import is_managed
from asya.protocol.mesh_table import Actor, Policy, Resiliency, Rule
from asya.protocol.strict_json import decode_value
from asya.runtime.call import HandlerInvoker
from asya.runtime.load import Handler
from asya.runtime.modes import EnvelopeMode, PayloadMode
from asya.sidecar import arrival, outcome
from asya.tasks.task_state import TaskState
from tests.doubles.envelopes import NOW, SPAN, arrival_of, mesh

ACTORS = ("prep", "infer", "post", "rescue")
DETOUR = ("rescue", "post")
FOREVER = 100_000
SPEC = Actor(
    kind="handler",
    resiliency=Resiliency(
        policies={
            "at once": Policy(max_attempts=FOREVER, backoff="constant", initial_delay=0.0),
            "in an hour": Policy(max_attempts=FOREVER, backoff="constant", initial_delay=3600.0),
            "never": Policy(max_attempts=1),
            "elsewhere": Policy(max_attempts=1, then_route=DETOUR),
        },
        rules=tuple(
            Rule(errors=(error,), policy=policy)
            for error, policy in (
                ("Again", "at once"),
                ("Timeout", "at once"),
                ("Later", "in an hour"),
                ("Enough", "never"),
                ("Rescued", "elsewhere"),
            )
        ),
    ),
)
TABLE = mesh(dict.fromkeys(ACTORS, SPEC), max_hops=60)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
ROUTES = st.lists(st.sampled_from(ACTORS), max_size=4)
OTHER_NAMES = st.text(min_size=1).filter(lambda name: name not in Envelope.__struct_fields__)
# The managed headers are the mesh's: a retry, for one, sets and removes them.
SENDERS_NAMES = st.text().filter(lambda name: not is_managed(name))


@dataclass(frozen=True)
class Sample:
    """A message, and the parts of it that are its sender's, as they are written."""

    body: bytes
    actor: str
    payload: bytes
    headers: dict[str, bytes]
    extra: dict[str, bytes]


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Any payload, headers and unknown members, written in any way that JSON allows."""
    layout: dict[str, Any] = {
        "ensure_ascii": draw(st.booleans()),
        "separators": draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:  ")])),
        "indent": draw(st.none() | st.sampled_from([0, 3])),
    }

    def written(value: Any) -> bytes:
        return json.dumps(value, **layout).encode()

    payload = written(draw(JSON))
    headers = {name: written(value) for name, value in draw(st.dictionaries(SENDERS_NAMES, JSON, max_size=3)).items()}
    extra = {name: written(value) for name, value in draw(st.dictionaries(OTHER_NAMES, JSON, max_size=2)).items()}
    actor = draw(st.sampled_from(ACTORS))
    route = {"prev": draw(st.lists(st.text(max_size=5), max_size=2)), "curr": actor, "next": draw(ROUTES)}
    members = {"id": b'"env-1"', "route": written(route), "headers": _object(headers), "payload": payload, **extra}
    return Sample(_object(members), actor, payload, headers, extra)


def _object(members: dict[str, bytes]) -> bytes:
    return b"{" + b" , ".join(json.dumps(name).encode() + b": " + raw for name, raw in members.items()) + b"}"


def under_way(body: bytes, actor: str, hours: float = 0) -> Hop:
    """The hop that a message becomes."""
    now = NOW + timedelta(hours=hours)
    received = arrival.receive(arrival_of(body), actor=actor, mesh=TABLE, now=now)
    assert isinstance(received, Hop), received
    started = arrival.start(received, None, now=now, new_span=lambda: SPAN)
    assert isinstance(started, Hop), started
    return started


def failed(hop: Hop, kind: str) -> Delivery:
    error = ErrorInfo(type=f"shop.{kind}", message="größe", mro=("Exception",), traceback="…")
    return outcome.failed(hop, error, now=NOW, jitter=0.5)


# --- bytes

RELAYS = ("on", "elsewhere", "Again", "Timeout", "Later", "Rescued")
ENDS = (
    "nothing",
    "unforeseen",
    "Enough",
    "time limit",
    "deadline",
    "crash",
    "nobody",
    "canceled",
    "wrong queue",
)


def relayed(hop: Hop, how: str, ahead: tuple[str, ...]) -> Delivery:
    """A hop that changes nothing but where the envelope stands."""
    match how:
        case "on":
            return outcome.frame(hop, Frame(payload=None), 0, now=NOW)
        case "elsewhere":
            return outcome.frame(hop, Frame(payload=None, next=ahead), 0, now=NOW)
        case "Timeout":
            return outcome.timed_out(hop, timedelta(seconds=1), by_deadline=False, now=NOW, jitter=0.5)
        case "Later":
            delayed = failed(hop, how)
            early = arrival.receive(arrival_of(delayed.body), actor=hop.actor, mesh=TABLE, now=NOW)
            assert isinstance(early, Diversion), "it is not due for an hour"
            (again,) = early.deliveries
            assert again.body == delayed.body
            return again
    return failed(hop, how)


def ended(hop: Hop, how: str) -> Delivery:
    """Each way in which a hop may be an envelope's last."""
    match how:
        case "nothing":
            return outcome.empty(hop, now=NOW)
        case "time limit":
            limited = mesh({hop.actor: Actor(kind="handler")})
            free = replace(hop, spec=limited.actors[hop.actor], mesh=limited)
            return outcome.timed_out(free, timedelta(seconds=1), by_deadline=False, now=NOW, jitter=0.5)
        case "deadline":
            return outcome.timed_out(hop, timedelta(seconds=1), by_deadline=True, now=NOW, jitter=0.5)
        case "crash":
            return outcome.crashed(hop, ErrorInfo(type="SystemExit", message=""), now=NOW)
        case "nobody":
            return outcome.mismatch(hop, TargetError("nobody"), now=NOW)
        case "canceled":
            state = TaskState(id="env-1", status="canceled")
            return _diverted(arrival.start(hop, state, now=NOW, new_span=lambda: SPAN))
        case "wrong queue":
            return _diverted(arrival.start(replace(hop, actor="absent"), None, now=NOW, new_span=lambda: SPAN))
    return failed(hop, how)


def _diverted(found: Hop | Diversion) -> Delivery:
    assert isinstance(found, Diversion)
    (delivery,) = found.deliveries
    return delivery


def route_after(route: Route, how: str, ahead: tuple[str, ...]) -> Route:
    """Where an envelope stands then: the rule in other words than the code's."""
    left = {"on": route.next, "elsewhere": ahead, "Rescued": DETOUR}.get(how)
    if left is None:
        return route
    first, *rest = [*left, ""][: len(left) or 1]
    return Route((*route.prev, route.curr), first, tuple(rest))


def assert_untouched(sample: Sample, envelope: Envelope) -> None:
    assert bytes(envelope.payload) == sample.payload
    assert {name: bytes(raw) for name, raw in envelope.headers.items() if name in sample.headers} == sample.headers
    assert {name for name in envelope.headers.keys() - sample.headers if not is_managed(name)} == set()
    assert {name: bytes(raw) for name, raw in envelope.extra.items()} == sample.extra
    assert envelope.id == "env-1"


@pytest.mark.rule("1.raw-payload", "1.un-shifted", "3.others-survive")
@given(samples(), st.lists(st.tuples(st.sampled_from(RELAYS), ROUTES.map(tuple)), max_size=8), st.sampled_from(ENDS))
@pytest.mark.slow
def test_any_payload_and_header_survive_any_number_of_relays_byte_for_byte(
    sample: Sample, steps: list[tuple[str, tuple[str, ...]]], end: str
) -> None:
    body, actor, hours = sample.body, sample.actor, 0
    for how, ahead in steps:
        hop = under_way(body, actor, hours)
        assert_untouched(sample, hop.envelope)
        delivery = relayed(hop, how, ahead)
        envelope = decode(delivery.body)
        assert_untouched(sample, envelope)
        assert envelope.route == route_after(hop.envelope.route, how, ahead)
        if delivery.actor == "x-sink":
            assert (how in ("on", "elsewhere"), envelope.route.curr) == (True, "")
            return
        assert delivery.actor == envelope.route.curr
        body, actor, hours = delivery.body, delivery.actor, hours + 2
    last = under_way(body, actor, hours)
    delivery = ended(last, end)
    assert delivery.actor in ("x-sink", "x-sump")
    assert_untouched(sample, decode(delivery.body))
    assert decode(delivery.body).route == last.envelope.route


# --- values


def function(payload: Any) -> Any:
    return payload


async def coroutine(payload: Any) -> Any:
    return payload


def generator(payload: Any) -> Iterator[Any]:
    yield
    yield payload


async def asynchronous_generator(payload: Any) -> AsyncIterator[Any]:
    yield payload


def second_frame(payload: Any) -> Iterator[Any]:
    yield {"the first": "is somebody else's"}
    yield payload


def whole(envelope: Any) -> Any:
    route = envelope["route"]
    ahead = route["next"]
    moved = {"prev": [*route["prev"], route["curr"]], "curr": ahead[0] if ahead else "", "next": ahead[1:]}
    return envelope | {"route": moved}


HANDLERS = (function, coroutine, generator, asynchronous_generator, second_frame, whole)


def frames(hop: Hop, handler: Handler) -> list[Frame]:
    mode = EnvelopeMode("envelope") if handler is whole else PayloadMode()
    call = HandlerInvoker(handler, mode)
    return list(call.frames(decode_value(hop.envelope.payload), lambda: envelope_view(hop.envelope), 5.0))


def value(text: bytes) -> str:
    """JSON as a text that is equal for equal values only: 1, 1.0 and true are three."""
    return json.dumps(json.loads(text), sort_keys=True)


@pytest.mark.rule("1.strict-json")
@given(samples(), st.lists(st.sampled_from(HANDLERS), max_size=6))
@pytest.mark.slow
def test_any_payload_and_header_survive_any_number_of_handlers_as_values(
    sample: Sample, handlers: list[Handler]
) -> None:
    assume(sample.payload != b"null")  # who returns nothing gives no frame
    body, actor = sample.body, sample.actor
    for number, handler in enumerate(handlers):
        hop = under_way(body, actor)
        given_back = frames(hop, handler)
        index = len(given_back) - 1
        # The way goes on for as long as there are handlers.
        ahead = Frame(
            payload=given_back[index].payload,
            next=given_back[index].next if number % 2 else ("infer", "post"),
            headers=given_back[index].headers,
            status=given_back[index].status,
        )
        delivery = outcome.frame(hop, ahead, index, now=NOW)
        envelope = decode(delivery.body)
        assert value(bytes(envelope.payload)) == value(sample.payload)
        carried = {name: value(bytes(raw)) for name, raw in envelope.headers.items() if name in sample.headers}
        assert carried == {name: value(raw) for name, raw in sample.headers.items()}
        assert {name: bytes(raw) for name, raw in envelope.extra.items()} == sample.extra
        if delivery.actor == "x-sink":
            return
        body, actor = delivery.body, delivery.actor


# --- the route

COMMANDS = st.one_of(
    st.tuples(st.just("yield")),
    st.tuples(st.just("set"), ROUTES),
    st.tuples(st.just("prepend"), ROUTES),
    st.tuples(st.just("append"), ROUTES),
    st.tuples(st.just("cut"), st.integers(0, 4), st.integers(0, 4), ROUTES),
    st.tuples(st.just("delete")),
    st.tuples(st.just("forge"), st.sampled_from([".route.prev", ".route.curr", ".route", ".route.prev[0]"])),
)


def commanded(commands: list[tuple[Any, ...]]) -> Handler:
    """A handler that does to its route what it is told to."""

    def handler(payload: Any) -> Iterator[Any]:
        for command in commands:
            match command:
                case ("yield",):
                    yield [payload]  # null by itself would be no frame
                case ("set", names):
                    yield ("SET", ".route.next", names)
                case ("prepend", names):
                    yield ("SET", ".route.next[:0]", names)
                case ("append", names):
                    yield ("SET", ".route.next[999:]", names)
                case ("cut", start, stop, names):
                    yield ("SET", f".route.next[{start}:{stop}]", names)
                case ("delete",):
                    yield ("DEL", ".route.next")
                case ("forge", path):
                    try:
                        yield ("SET", path, "mine")
                    except PermissionError:
                        continue
                    raise AssertionError(path)

    return handler


def routes_left(route: Route, commands: list[tuple[Any, ...]]) -> list[list[str]]:
    """`next` as each frame leaves it, by operations of Python's own."""
    ahead, left = list(route.next), []
    for command in commands:
        match command:
            case ("yield",):
                left.append(list(ahead))
            case ("set", names):
                ahead = list(names)
            case ("prepend", names):
                ahead = [*names, *ahead]
            case ("append", names):
                ahead = [*ahead, *names]
            case ("cut", start, stop, names):
                ahead[start:stop] = names
            case ("delete",):
                ahead = []
    return left


@pytest.mark.rule("1.shift")
@given(samples(), st.lists(st.lists(COMMANDS, max_size=8), min_size=1, max_size=4), st.randoms())
@pytest.mark.slow
def test_the_shift_and_the_handler_alone_move_a_route(
    sample: Sample, hops: list[list[tuple[Any, ...]]], chance: Any
) -> None:
    body, actor = sample.body, sample.actor
    for commands in hops:
        hop = under_way(body, actor)
        route = hop.envelope.route
        deliveries = [
            outcome.frame(hop, frame, index, now=NOW) for index, frame in enumerate(frames(hop, commanded(commands)))
        ]
        left = routes_left(route, commands)
        assert [decode(each.body).route for each in deliveries] == [
            Route((*route.prev, route.curr), ahead[0] if ahead else "", tuple(ahead[1:])) for ahead in left
        ]
        assert [each.actor for each in deliveries] == [ahead[0] if ahead else "x-sink" for ahead in left]
        assert [decode(each.body).id for each in deliveries[1:]] == [
            ids.child_id(hop.envelope.id, 0, route.position, index) for index in range(1, len(left))
        ]
        assert hop.envelope.route == route
        going_on = [each for each in deliveries if each.actor != "x-sink"]
        if not going_on:
            return
        body, actor = (chosen := chance.choice(going_on)).body, chosen.actor
