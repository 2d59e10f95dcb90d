"""protocol §1: encoding and decoding envelopes; §5.1: parse errors name the field."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.codec import ParseError, decode, encode
from tests.doubles.envelopes import message, status
from tests.fuzz.envelope_ids import USABLE

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.lists(st.text(min_size=1, max_size=8), max_size=4)
KNOWN_KEYS = frozenset({"id", "parent_id", "route", "headers", "status", "payload"})


def written(value: Any, escaped: bool) -> bytes:
    return json.dumps(value, ensure_ascii=escaped, separators=(", ", " : ")).encode()


@st.composite
def envelopes(draw: st.DrawFn) -> tuple[tuple[dict[str, bytes], bytes], bytes]:
    """The text of an envelope's headers and payload, and the whole message."""
    escaped = draw(st.booleans())
    headers = draw(st.dictionaries(st.text(), JSON, max_size=3))
    extra = draw(st.dictionaries(st.text().filter(lambda name: name not in KNOWN_KEYS), JSON, max_size=2))
    members = {
        "id": draw(USABLE),
        "route": {"prev": draw(NAMES), "curr": draw(st.text(max_size=8)), "next": draw(NAMES)},
        "headers": headers,
        "payload": draw(JSON),
    } | extra
    if draw(st.booleans()):
        members["status"] = status() | draw(st.dictionaries(st.sampled_from(["note", "größe"]), JSON))
    parts = {name: written(value, escaped) for name, value in headers.items()}, written(members["payload"], escaped)
    return parts, written(members, escaped)


def refusal(body: bytes) -> ParseError | None:
    """The parse error of a message; None for a valid envelope."""
    try:
        decode(body)
    except ParseError as error:
        return error
    return None


@pytest.mark.rule("1.raw-payload", "3.others-survive")
@given(envelopes())
@pytest.mark.slow
def test_protocol_1_payload_and_headers_survive_relays_byte_for_byte(
    sample: tuple[tuple[dict[str, bytes], bytes], bytes],
) -> None:
    (headers, payload), body = sample
    relayed = encode(decode(encode(decode(body))))
    envelope = decode(relayed)
    assert bytes(envelope.payload) == payload
    assert {name: bytes(value) for name, value in envelope.headers.items()} == headers
    before, after = json.loads(body), json.loads(relayed)
    empty = [name for name in ("headers", "status") if not before.get(name)]
    assert {name: value for name, value in before.items() if name not in empty} == after


@pytest.mark.rule("5.1")
@given(
    st.binary(max_size=60)
    | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | JSON.map(lambda value: json.dumps(value).encode())
)
def test_protocol_5_1_malformed_bytes_raise_nothing_but_parse_errors(body: bytes) -> None:
    error = refusal(body)
    assert error is None or str(error).startswith("Failed to parse message: ")


@pytest.mark.rule("1.id")
@given(st.sampled_from(["id", "parent_id", "route", "headers", "status", "payload"]), JSON)
def test_protocol_5_1_a_wrong_value_of_any_field_is_named(field: str, value: Any) -> None:
    error = refusal(message(**{field: value}))
    if error is not None:
        assert field in str(error)
        assert error.envelope_id == (None if field == "id" else "env-1")


MALFORMED: list[tuple[str, bytes, str, str | None]] = [
    ("no JSON", b"hello", "the message is no JSON", None),
    ("cut short", message()[:-1], "the message is no JSON", "env-1"),
    ("not UTF-8", b'{"id": "\xff"}', "not UTF-8", None),
    ("no object", b"[1, 2]", "no JSON object", None),
    ("NaN", b'{"id": "a", "payload": NaN}', "the message is no JSON", "a"),
    ("too deep", b'{"id":"env-1","payload":' + b"[" * 100_000, "nested too deeply", "env-1"),
    ("no id", message(id=...), "id is missing", None),
    ("empty id", message(id=""), "id is empty", None),
    ("id null", message(id=None), "id must be a string, not null", None),
    ("id a number", message(id=7), "id must be a string, not a number", None),
    ("id too long", message(id="x" * 257), "id has 257 bytes; 256 at most", None),
    ("id too long in bytes", message(id="ü" * 129), "id has 258 bytes; 256 at most", None),
    ("id a key", message(id="OUTAGE"), "id is a key of the mesh's own tables; choose another one", None),
    ("id with a slash", message(id="w/x"), "id has '/'; an id has none of / \\ ? # %, no control characters", None),
    ("id with a line feed", message(id="a\nb"), "id has '\\n'; an id has none of", None),
    ("id an option", message(id="--yes"), "id begins with '-'; an id has none of", None),
    ("id a folder", message(id=".."), "id is '..'; an id has none of", None),
    ("no route", message(route=...), "route is missing", "env-1"),
    ("route null", message(route=None), "route", "env-1"),
    ("route a list", message(route=["a"]), "route: Expected `object`", "env-1"),
    ("no prev", message(route={"curr": "a", "next": []}), "route.prev is missing", "env-1"),
    ("no curr", message(route={"prev": [], "next": []}), "route.curr is missing", "env-1"),
    ("no next", message(route={"prev": [], "curr": "a"}), "route.next is missing", "env-1"),
    ("next holds a number", message(route={"prev": [], "curr": "a", "next": ["b", 3]}), "route.next[1]", "env-1"),
    ("curr null", message(route={"prev": [], "curr": None, "next": []}), "route.curr", "env-1"),
    ("headers a list", message(headers=[]), "headers: Expected `object", "env-1"),
    ("a header no value can hold", message()[:-1] + b',"headers":{"x":1e999}}', "headers.x", "env-1"),
    ("half a surrogate", message()[:-1] + rb',"headers":{"x":"\udc00 "}}', "the message is no JSON", "env-1"),
    ("half a surrogate in the id", rb'{"id":"\ud800","payload":1}', "the message is no JSON", None),
    ("not UTF-8 beside the id", b'{"id":"env-1","payload":"\xff"}', "not UTF-8", "env-1"),
    ("no payload", message(payload=...), "payload is missing", "env-1"),
    ("parent_id a number", message(parent_id=4), "parent_id", "env-1"),
    ("status a text", message(status="failed"), "status", "env-1"),
    ("phase unknown", message(status=status(phase="done")), "status.phase", "env-1"),
    ("attempt zero", message(status=status(attempt=0)), "status.attempt", "env-1"),
    ("attempt too high", message(status=status(attempt=1_000_000)), "status.attempt", "env-1"),
    ("attempt a text", message(status=status(attempt="1")), "status.attempt", "env-1"),
    (
        "deadline no time",
        message(status=status(deadline_at="soon")),
        "status.deadline_at: 'soon' is no RFC 3339",
        "env-1",
    ),
    ("deadline a number", message(status=status(deadline_at=5)), "status.deadline_at", "env-1"),
    (
        "deadline beyond time",
        message(status=status(deadline_at="9999-12-31T23:59:59-23:59")),
        "status.deadline_at",
        "env-1",
    ),
    ("updated_at no time", message(status=status(updated_at="2026-02-30T12:00:00Z")), "status.updated_at", "env-1"),
    (
        "a blank before the time",
        message(status=status(updated_at="2026-02-03 12:00:00Z")),
        "status.updated_at",
        "env-1",
    ),
    ("a time of no zone", message(status=status(updated_at="2026-02-03T12:00:00")), "status.updated_at", "env-1"),
    ("created_at no time", message(status=status(created_at="yesterday")), "status.created_at", "env-1"),
    ("error without a type", message(status=status(error={"message": "x"})), "status.error", "env-1"),
]


@pytest.mark.rule("1.payload")
@pytest.mark.parametrize(
    ("body", "named", "kept_id"), [case[1:] for case in MALFORMED], ids=[case[0] for case in MALFORMED]
)
def test_protocol_5_1_the_field_is_named_and_a_usable_id_kept(body: bytes, named: str, kept_id: str | None) -> None:
    with pytest.raises(ParseError, match="Failed to parse message: ") as caught:
        decode(body)
    assert named in str(caught.value)
    assert caught.value.envelope_id == kept_id


@pytest.mark.rule("1.null-is-absent")
@pytest.mark.parametrize("field", ["parent_id", "headers", "status"])
@pytest.mark.parametrize("absent", [None, ..., ""], ids=["null", "missing", "empty"])
def test_protocol_1_null_and_empty_are_absent_and_left_out(field: str, absent: Any) -> None:
    empty = {"parent_id": "", "headers": {}, "status": {}}[field] if absent == "" else absent
    envelope = decode(message(**{field: empty}))
    assert not getattr(envelope, field)
    assert field not in json.loads(encode(envelope))
    assert field != "status" or envelope.status is None


@pytest.mark.rule("1.payload")
def test_protocol_1_a_payload_of_null_is_a_payload() -> None:
    assert json.loads(encode(decode(message(payload=None))))["payload"] is None


@pytest.mark.rule("1.unknown-keys")
def test_protocol_1_unknown_keys_are_carried_along() -> None:
    body = message(priority={"level": 3}, status=status(owner="me"))
    after = json.loads(encode(decode(body)))
    assert after["priority"] == {"level": 3}
    assert after["status"]["owner"] == "me"


@pytest.mark.rule("1.ascii")
def test_protocol_1_written_text_is_ascii_and_relayed_bytes_stay() -> None:
    body = '{"id":"größe","route":{"prev":[],"curr":"infer","next":[]},"headers":{"ключ":"значение"},"payload":"𝄞"}'.encode()
    out = encode(decode(body))
    assert b'"payload":"\xf0\x9d\x84\x9e"' in out
    assert '"значение"'.encode() in out
    assert rb'"id":"gr\u00f6\u00dfe"' in out
    assert decode(out) == decode(body)


@pytest.mark.rule("2.times")
def test_protocol_2_second_precision_and_offsets_are_accepted() -> None:
    for text in ("2026-11-20T12:00:00Z", "2026-11-20T14:00:00.5+02:00"):
        assert decode(message(status=status(deadline_at=text))).status.deadline_at == text  # type: ignore[union-attr]


@pytest.mark.parametrize("route", [{"actors": ["a"], "current": 0}, {"steps": ["a"]}])
def test_the_codec_knows_no_other_form_of_routes(route: dict[str, Any]) -> None:
    with pytest.raises(ParseError, match=r"route\.prev is missing"):
        decode(message(route=route))


def test_protocol_1_both_passes_read_the_same() -> None:
    """The fast pass accepts only the known keys; one unknown key sends the message through the careful pass."""
    quick, careful = decode(message()), decode(message(unknown=1))
    assert msgspec.structs.replace(careful, extra={}) == quick


@pytest.mark.rule("1.position", "3.generation")
@pytest.mark.parametrize(
    ("header", "generation"), [(1, 1), (9999, 9999), (10_000, 0), (-1, 0), (True, 0), ("2", 0), (1.5, 0), (None, 0)]
)
def test_protocol_12_the_generation_is_0_where_the_header_is_no_such_number(header: Any, generation: int) -> None:
    assert decode(message(headers={"x-asya-generation": header})).generation == generation


@pytest.mark.rule("3.mesh-status")
def test_protocol_3_only_the_word_off_makes_an_envelope_stealth() -> None:
    for value, stealth in (("off", True), ("OFF", False), (False, False), (None, False), ("on", False)):
        assert decode(message(headers={"x-asya-mesh-status": value})).is_stealth is stealth


@pytest.mark.parametrize("name", ["extra", "status_extra"])
@pytest.mark.parametrize("value", [None, {}, {"a": 1}, 5, "x"])
def test_protocol_1_an_unknown_key_with_the_name_of_a_struct_field_travels_along(name: str, value: Any) -> None:
    body = message(**{name: value})
    assert json.loads(encode(decode(body)))[name] == value
    assert decode(body).status_extra == {}
