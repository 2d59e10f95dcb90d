"""`asya send`: from what a person has in a file to a valid envelope, or to one clear line."""

import json
import uuid

import pytest

from asya.protocol.codec import decode, encode
from asya_cli.errors import CommandError
from asya_cli.send import as_envelope, read_bytes, wrapped

ENVELOPE = {"id": "one", "route": {"prev": [], "curr": "a", "next": ["b"]}, "payload": {"n": 1.50}, "tenant": "acme"}


def body(**changes: object) -> bytes:
    return json.dumps({**ENVELOPE, **changes}).encode()


def test_an_envelope_is_sent_as_it_is_written() -> None:
    envelope = as_envelope(body(), "event.json")
    assert envelope.id == "one"
    assert json.loads(encode(envelope)) == ENVELOPE


def test_another_id_replaces_the_one_in_the_file() -> None:
    assert as_envelope(body(), "event.json", "two").id == "two"


def test_an_envelope_without_id_gets_a_new_one() -> None:
    without = json.dumps({key: value for key, value in ENVELOPE.items() if key != "id"}).encode()
    first, second = as_envelope(without, "event.json"), as_envelope(without, "event.json")
    assert first.id != second.id
    assert uuid.UUID(first.id).version == 4


def test_a_payload_is_wrapped_for_its_actors() -> None:
    envelope = wrapped(b'{"n": 1.50}', "payload.json", "a", ["b", "c"], "one")
    assert decode(encode(envelope)) == envelope
    assert bytes(envelope.payload) == b'{"n": 1.50}'
    assert (envelope.route.prev, envelope.route.curr, envelope.route.next) == ((), "a", ("b", "c"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "holds no JSON object"),
        (b"[1]", "holds no JSON object"),
        (b'{"flights": "raw/flights.csv"}', "route is missing"),
        (body(route={"prev": [], "curr": "a"}), "route.next is missing"),
        (body(id=""), "id is empty"),
        (body(route={"prev": ["a"], "curr": "", "next": []}), "route.curr is empty"),
    ],
)
def test_what_is_no_envelope_is_refused_naming_file_and_field(text: bytes, said: str) -> None:
    with pytest.raises(CommandError) as caught:
        as_envelope(text, "event.json")
    assert "event.json" in caught.value.problem
    assert said in caught.value.problem


def test_a_payload_that_is_no_json_is_refused() -> None:
    with pytest.raises(CommandError, match=r"payload\.json holds no JSON"):
        wrapped(b"hello", "payload.json", "a", [], "one")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match=r"/nowhere/event\.json cannot be read: No such file"):
        read_bytes("/nowhere/event.json")
