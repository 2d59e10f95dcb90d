"""Members of messages that are no valid JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.codec import readable_headers
from asya.protocol.salvage import members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abcd", min_size=1, max_size=3), VALUES, max_size=4), st.booleans())
@pytest.mark.slow
def test_the_members_of_valid_json_are_its_members(document: dict[str, object], escaped: bool) -> None:
    found = members(json.dumps(document, ensure_ascii=escaped))
    assert {name: json.loads(value) for name, value in found.items()} == document


@pytest.mark.rule("5.1.id")
@pytest.mark.parametrize(
    "rest",
    [
        rb'"payload":"\ud800"}',
        b'"payload":' + b"[" * 1500 + b"]" * 1500 + b"}",
        b'"payload":{"a":nope}}',
        b'"payload":{"a":"cut',
    ],
)
def test_protocol_5_1_what_stands_beside_the_mistake_is_found(rest: bytes) -> None:
    body = b'{"id":"env-1","headers":{"tenant":"acme","x-asya-generation":2},' + rest
    assert members(body.decode())["id"] == '"env-1"'
    assert {name: bytes(raw) for name, raw in readable_headers(body).items()} == {
        "tenant": b'"acme"',
        "x-asya-generation": b"2",
    }


def test_the_last_of_equal_names_counts_as_in_json() -> None:
    assert members('{"id":"a","id":"b"') == {"id": '"b"'}


def test_an_inner_object_has_no_say() -> None:
    assert members('{"payload":{"id":"inner"},"x":') == {"payload": '{"id":"inner"}'}


@pytest.mark.parametrize("text", ["", "hello", "[1, 2]", '"id"', '{"id"', '{"id":', '{"id":"cut', "{}{}"])
def test_nothing_is_made_up(text: str) -> None:
    assert members(text) == {}


@pytest.mark.parametrize("text", ["[", '"', '\\"', '"a"', ":", '"a":1,'])
def test_a_hostile_message_is_read_in_one_pass(text: str) -> None:
    """A second pass over the rest for each quote or bracket would take hours."""
    assert members('{"id":"env-1","payload":' + text * 200_000)["id"] == '"env-1"'
