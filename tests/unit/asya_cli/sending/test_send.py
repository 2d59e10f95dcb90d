"""`asya send`: from a file to a valid envelope, or to a clear error."""

import json
import uuid

import pytest

from asya.protocol.codec import decode, encode
from asya_cli.errors import CommandError
from asya_cli.sending.send import parse_envelope, read_bytes, wrap_payload

ENVELOPE = {"id": "one", "route": {"prev": [], "curr": "a", "next": ["b"]}, "payload": {"n": 1.50}, "tenant": "acme"}


def body(**changes: object) -> bytes:
    return json.dumps({**ENVELOPE, **changes}).encode()


def test_an_envelope_is_sent_as_it_is_written() -> None:
    envelope = parse_envelope(body(), "event.json")
    assert envelope.id == "one"
    assert json.loads(encode(envelope)) == ENVELOPE


def test_another_id_replaces_the_one_in_the_file() -> None:
    assert parse_envelope(body(), "event.json", "two").id == "two"


def test_an_envelope_without_id_gets_a_new_one() -> None:
    without = json.dumps({key: value for key, value in ENVELOPE.items() if key != "id"}).encode()
    first, second = parse_envelope(without, "event.json"), parse_envelope(without, "event.json")
    assert first.id != second.id
    assert uuid.UUID(first.id).version == 4


def test_a_payload_is_wrapped_for_its_actors() -> None:
    envelope = wrap_payload(b'{"n": 1.50}', "payload.json", "a", ["b", "c"], "one")
    assert decode(encode(envelope)) == envelope
    assert bytes(envelope.payload) == b'{"n": 1.50}'
    assert (envelope.route.prev, envelope.route.curr, envelope.route.next) == ((), "a", ("b", "c"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"{", "is not valid JSON: expecting property name enclosed in double quotes at line 1, column 2"),
        (b"[1]", "is not a JSON object"),
        (b'{"flights": "raw/flights.csv"}', "route is missing"),
        (body(route={"prev": [], "curr": "a"}), "route.next is missing"),
        (body(id=""), "id is empty"),
        (body(route={"prev": ["a"], "curr": "", "next": []}), "route.curr is empty"),
    ],
)
def test_an_invalid_envelope_is_refused_with_file_and_field(text: bytes, problem: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_envelope(text, "event.json")
    assert "event.json" in caught.value.problem
    assert problem in caught.value.problem


def test_a_payload_that_is_not_json_is_refused() -> None:
    with pytest.raises(CommandError, match=r"payload\.json is not valid JSON"):
        wrap_payload(b"hello", "payload.json", "a", [], "one")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(CommandError, match=r"cannot read /nowhere/event\.json: No such file"):
        read_bytes("/nowhere/event.json")
