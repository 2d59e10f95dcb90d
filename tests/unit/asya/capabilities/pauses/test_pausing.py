"""protocol §11, x-pause: the stored envelope and the report."""

import msgspec
import pytest
from msgspec.structs import replace

from asya.capabilities.pauses import pausing
from asya.function.hop import Hop
from asya.protocol import codec
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Frame
from asya.protocol.mesh_table import Actor
from asya.protocol.pause import Pause, PauseField, PauseHeader
from asya.sidecar import outcome
from tests.doubles.envelopes import NOW, hop, mesh, message, status

FIELDS = (PauseField(name="approved", type="boolean", prompt="Go on?"),)
SPEC = Actor(kind="pause", pause=Pause(prompt="Send it?", fields=FIELDS))
DEADLINE = "2026-11-20T12:05:00.250000Z"  # five minutes from NOW


def at_pause(**members: object) -> Hop:
    return hop(message(**members), spec=SPEC)


@pytest.mark.rule("11.pause.route")
def test_the_route_is_shifted_towards_x_resume() -> None:
    route = pausing.paused_envelope(at_pause(), now=NOW).route
    assert (route.prev, route.curr, route.next) == (("prep", "infer"), "x-resume", ("post",))


@pytest.mark.rule("11.pause.route")
def test_an_x_resume_that_stands_there_already_is_not_doubled() -> None:
    ahead = {"prev": ["prep"], "curr": "infer", "next": ["x-resume", "post"]}
    route = pausing.paused_envelope(at_pause(route=ahead), now=NOW).route
    assert (route.curr, route.next) == ("x-resume", ("post",))


def test_at_the_end_of_a_route_too() -> None:
    route = pausing.paused_envelope(at_pause(route={"prev": [], "curr": "infer", "next": []}), now=NOW).route
    assert (route.prev, route.curr, route.next) == (("infer",), "x-resume", ())


@pytest.mark.rule("3.pause")
def test_what_is_asked_stands_in_the_header() -> None:
    kept = pausing.paused_envelope(at_pause(), now=NOW)
    assert pausing.pause_of(kept) == PauseHeader(
        epoch=1, paused_at="2026-11-20T12:00:00.250000Z", prompt="Send it?", fields=FIELDS
    )
    assert kept.status is not None
    assert (kept.status.phase, kept.status.reason) == ("paused", "Paused")


@pytest.mark.rule("11.resume.time")
def test_the_time_left_is_kept_with_it() -> None:
    about = pausing.pause_of(pausing.paused_envelope(at_pause(status=status(deadline_at=DEADLINE)), now=NOW))
    assert about is not None
    assert about.remaining == 300.0


@pytest.mark.rule("11.resume.next-hop")
@pytest.mark.parametrize(
    ("ahead", "override", "remaining"),
    [
        (["slow", "post"], {}, 630.0),
        (["x-resume", "slow"], {}, 630.0),
        (["post", "slow"], {}, 300.0),
        (["post"], {"post": "slow"}, 630.0),
        ([], {}, 300.0),
        (["nobody"], {}, 300.0),
    ],
)
def test_the_time_left_suffices_for_the_next_hop(ahead: list[str], override: object, remaining: float) -> None:
    members = {"route": {"prev": ["prep"], "curr": "infer", "next": ahead}, "status": status(deadline_at=DEADLINE)}
    actors = {"infer": SPEC, "slow": Actor(kind="handler", timeout=600.0)}
    body = message(**members, headers={"x-asya-route-override": override})
    table = mesh(actors)
    paused_hop = replace(hop(body, spec=SPEC), mesh=table)
    about = pausing.pause_of(pausing.paused_envelope(paused_hop, now=NOW))
    assert about is not None
    assert about.remaining == remaining


@pytest.mark.rule("11.pause.slice")
@pytest.mark.parametrize("index", [0, 1])
def test_a_slice_cannot_pause(index: int) -> None:
    header = {"actor": "x-fan-in", "set_id": "s", "origin_id": "o", "slice_index": index, "slice_count": 2}
    at_slice = at_pause(headers={"x-asya-fan-in": header | {"aggregation_key": "/results"}})
    refusal = pausing.refusal(at_slice, is_reported=True, now=NOW)
    assert refusal is not None
    (delivery,) = refusal.deliveries
    envelope = codec.decode(delivery.body)
    assert delivery.actor == "x-sink"  # which notifies the set
    assert envelope.status is not None
    assert envelope.status.error is not None
    assert (envelope.status.phase, envelope.status.reason) == ("failed", "RuntimeError")
    assert "it is a slice of a set" in envelope.status.error.message
    assert "after x-fan-in" in envelope.status.error.message
    assert "x-asya-fan-in" in envelope.headers
    assert pausing.refusal(at_pause(), is_reported=True, now=NOW) is None


def test_payload_and_headers_are_kept_as_they_came() -> None:
    body = message().replace(b'{"text":"hello"}', b'{"text" : "hello", "n": 1.0}')
    kept = pausing.paused_envelope(hop(body, spec=SPEC), now=NOW)
    assert bytes(kept.payload) == b'{"text" : "hello", "n": 1.0}'
    assert kept.header("tenant") == "acme"
    assert "x-asya-first-attempt" not in kept.headers
    assert codec.decode(codec.encode(kept)) == kept


def test_an_actor_without_a_prompt_of_its_own_asks_as_x_pause_does() -> None:
    about = pausing.pause_of(pausing.paused_envelope(hop(message(), spec=Actor(kind="pause")), now=NOW))
    assert about is not None
    assert (about.prompt, about.fields) == ("Task paused", ())


def test_the_report_names_position_prompt_and_fields() -> None:
    started = at_pause()
    about = pausing.pause_of(pausing.paused_envelope(started, now=NOW))
    assert about is not None
    event = pausing.paused_report(started, about)
    assert (event.status, event.position, event.at) == ("paused", 1, about.paused_at)
    assert (event.data.prompt, event.data.fields, event.data.actor) == ("Send it?", FIELDS, "infer")


def test_what_nobody_hears_of_fails_saying_so() -> None:
    found = pausing.refusal(at_pause(headers={"x-asya-mesh-status": "off"}), is_reported=False, now=NOW)
    assert found is not None
    (delivery,) = found.deliveries
    envelope = codec.decode(delivery.body)
    assert delivery.actor == "x-sink"
    assert envelope.status is not None
    assert envelope.status.error is not None
    assert (envelope.status.phase, envelope.status.reason) == ("failed", "RuntimeError")
    assert "cannot pause" in envelope.status.error.message
    assert pausing.refusal(at_pause(), is_reported=True, now=NOW) is None


@pytest.mark.rule("11.pause.unanswerable")
@pytest.mark.parametrize(
    ("fields", "payload", "field"),
    [
        (FIELDS, "a text", "approved"),
        (FIELDS, [1, 2], "approved"),
        ((PauseField(name="n", type="number", payload_key="/text/n", required=False, default=1),), {"text": "x"}, "n"),
    ],
)
def test_11_a_pause_that_no_answer_could_end_fails(fields: tuple[PauseField, ...], payload: object, field: str) -> None:
    spec = Actor(kind="pause", pause=Pause(fields=fields))
    refused = pausing.refusal(hop(message(payload=payload), spec=spec), is_reported=True, now=NOW)
    assert refused is not None
    envelope = codec.decode(refused.deliveries[0].body)
    assert envelope.status is not None
    assert envelope.status.error is not None
    assert (envelope.status.phase, envelope.status.reason) == ("failed", "RuntimeError")
    assert f"no answer could resume it: {field} cannot be put into the payload" in envelope.status.error.message


@pytest.mark.rule("11.pause.unanswerable")
@pytest.mark.parametrize(("size", "is_refused"), [(600 * 1024, False), (608 * 1024, True)])
def test_11_headers_that_leave_no_room_for_the_answers_fail(size: int, is_refused: bool) -> None:
    spec = Actor(kind="pause", pause=Pause(fields=FIELDS))
    paused_hop = hop(message(headers={"notes": "x" * size}, payload={}), spec=spec)
    refused = pausing.refusal(paused_hop, is_reported=True, now=NOW)
    assert (refused is not None) == is_refused


@pytest.mark.rule("11.pause.unanswerable")
@pytest.mark.parametrize(
    ("fields", "payload"),
    [
        ((), "a text"),  # any answer, also an empty one
        ((PauseField(name="n", type="number", required=False),), "a text"),
        (FIELDS, None),
        ((PauseField(name="n", type="number", payload_key="/0/n"),), [{}]),
        # The second answer goes into the first one.
        ((PauseField(name="items", type="array"), PauseField(name="n", type="string", payload_key="/items/0")), {}),
    ],
)
def test_11_a_pause_that_some_answer_ends_is_kept(fields: tuple[PauseField, ...], payload: object) -> None:
    spec = Actor(kind="pause", pause=Pause(fields=fields))
    assert pausing.refusal(hop(message(payload=payload), spec=spec), is_reported=True, now=NOW) is None


@pytest.mark.parametrize(
    "header", [{"epoch": -1, "paused_at": "x"}, {"prompt": "?"}, 5, {"epoch": "1", "paused_at": ""}]
)
def test_a_header_of_another_shape_is_a_parse_error(header: object) -> None:
    with pytest.raises(ParseError, match="x-asya-pause"):
        pausing.pause_of(codec.decode(message(headers={"x-asya-pause": header})))


@pytest.mark.rule("5.9.pause")
def test_5_9_elsewhere_the_header_goes() -> None:
    started = hop(message(headers={"x-asya-pause": {"prompt": "?"}, "tenant": "acme"}))
    sent = codec.decode(outcome.frame(started, Frame(msgspec.Raw(b"1")), 0, now=NOW).body)
    assert set(sent.headers) & {"x-asya-pause", "tenant"} == {"tenant"}
