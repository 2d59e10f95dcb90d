"""The sidecar takes any message (protocol §5.1).

It raises nothing and acknowledges the message. What is not an envelope goes to x-sump with the name of the wrong field.
"""

import json
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol import ids
from asya.protocol.envelope import Envelope
from asya.protocol.times import parse_time
from tests.doubles.envelopes import message
from tests.doubles.mesh_world import MeshWorld, batch_failures, mesh_world, sqs_event

ABSENT = object()
PHASES = ("pending", "processing", "retrying", "succeeded", "failed", "paused", "canceled")
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 2_000_000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
VALID = json.loads(message())


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_id(value: Any) -> bool:
    if not isinstance(value, str) or not 1 <= len(value.encode("utf-8", "surrogatepass")) <= 256:
        return False
    marks = any(each in r"/\?#%" or unicodedata.category(each) in ("Cc", "Zl", "Zp", "Cs") for each in value)
    return not marks and not value.startswith("-") and value not in (".", "..", "OUTAGE")


def is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and parse_time(value) is not None
    except ValueError:
        return False


def is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value < 1_000_000


def or_none(check: Any) -> Any:
    return lambda value: value is None or value is ABSENT or check(value)


# What each field may hold, in other words than the code's.
FIELDS: dict[tuple[str, ...], Any] = {
    ("id",): is_id,
    ("parent_id",): or_none(is_text),
    ("route",): lambda _: False,  # no value of ours is one by chance: an object without its three keys is none
    ("route", "prev"): is_names,
    ("route", "curr"): is_text,
    ("route", "next"): is_names,
    ("headers",): or_none(lambda value: isinstance(value, dict)),
    ("headers", "tenant"): lambda _: True,
    ("status", "phase"): or_none(lambda value: value in PHASES),
    ("status", "attempt"): or_none(is_count),
    ("status", "created_at"): or_none(is_time),
    ("status", "deadline_at"): or_none(is_time),
    ("payload",): lambda value: value is not ABSENT,
}
LIKELY = st.sampled_from(
    [
        None,
        ABSENT,
        "",
        "infer",
        "post",
        "x" * 257,
        ".",
        "-x",
        "a/b",
        "\x1f",
        "\u2028",
        0,
        1,
        -1,
        1.5,
        True,
        [],
        ["post"],
        ["post", 3],
        {},
        {"prev": []},
    ]
)


def changed(path: tuple[str, ...], value: Any) -> bytes:
    """The valid envelope with one of its values replaced, or gone."""
    whole = json.loads(json.dumps(VALID))
    holder = whole
    for key in path[:-1]:
        holder = holder[key]
    if value is ABSENT:
        holder.pop(path[-1], None)
    else:
        holder[path[-1]] = value
    return json.dumps(whole).encode()


@pytest.fixture(scope="module")
def world() -> Iterator[MeshWorld]:
    """One for all examples; each looks at what is new."""
    with pytest.MonkeyPatch.context() as monkeypatch, mesh_world(monkeypatch) as made:
        yield made


def taken(world: MeshWorld, body: bytes | str) -> tuple[list[Any], dict[str, list[Envelope]]]:
    """What the handler was called with, and what was sent to whom, because of one message."""
    called: list[Any] = []

    def handler(payload: Any) -> Any:
        called.append(payload)
        return [payload]

    world.sqs.sent.clear()
    answer = build_sidecar(world.light(handler)).process(sqs_event(body))
    assert batch_failures(answer) == [], "bad input is acked: x-sump has it"
    sent = {
        queue.removeprefix("asya-shop-"): [each.envelope for each in some] for queue, some in world.sqs.sent.items()
    }
    return called, {actor: some for actor, some in sent.items() if some}


def assert_refused(sent: dict[str, list[Envelope]], body: str, field: str, envelope_id: str) -> None:
    assert list(sent) == ["x-sump"]
    (refused,) = sent["x-sump"]
    assert refused.status is not None
    assert refused.status.error is not None
    assert (refused.status.phase, refused.status.reason) == ("failed", "ParseError")
    said = refused.status.error.message
    assert said.startswith("Failed to parse message: ")
    assert field in said
    assert json.loads(bytes(refused.payload)) == {"error": said, "original_message": body, "encoding": "utf-8"}
    assert refused.id == envelope_id
    assert refused.route.curr == "x-sump"


ONE_WORLD = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.rule("5.1")
@pytest.mark.slow
@pytest.mark.parametrize("path", FIELDS, ids=".".join)
@given(value=LIKELY | JSON)
@settings(parent=ONE_WORLD, max_examples=30)
def test_a_value_that_a_field_cannot_hold_is_named_and_any_other_goes_on(
    world: MeshWorld, path: tuple[str, ...], value: Any
) -> None:
    body = changed(path, value)
    called, sent = taken(world, body)
    if FIELDS[path](value):
        (end,) = [some[0] for some in sent.values()]
        assert end.status is not None
        assert end.status.reason != "ParseError"
        return
    assert called == []
    known = VALID["id"] if path != ("id",) else ids.id_of_message("message-0")
    assert_refused(sent, body.decode(), ".".join(path), known)


@pytest.mark.rule("4.bad-input-is-acked")
@given(st.text() | JSON.map(json.dumps) | st.text(alphabet='{}[]",:0123456789.eE+-tfn \\u'))
@settings(parent=ONE_WORLD)
def test_what_is_no_envelope_at_all_is_refused_whole(world: MeshWorld, body: str) -> None:
    called, sent = taken(world, body)
    assert called == []
    assert_refused(sent, body, "", ids.id_of_message("message-0"))


@given(st.data())
@settings(parent=ONE_WORLD, max_examples=100)
@pytest.mark.slow
def test_an_envelope_that_lost_or_changed_some_bytes_goes_on_or_is_refused(
    world: MeshWorld, data: st.DataObject
) -> None:
    text = message().decode()
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 6, len(text))))
    body = text[:start] + data.draw(st.text(max_size=3)) + text[stop:]
    called, sent = taken(world, body)
    assert len(sent) == 1
    ((target, envelopes),) = sent.items()
    assert len(envelopes) == 1
    if not called:
        assert target in ("x-sump", "x-sink")
        status = envelopes[0].status
        assert status is not None
        assert status.error is not None
        assert status.error.message
