"""protocol §9: slice headers, messages about sets, and the insertion of results into a payload."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from asya.protocol import slices as fan_in
from asya.protocol.codec import decode
from asya.protocol.errors import ErrorInfo
from asya.protocol.headers import MAX_ENCLOSING_SETS
from asya.protocol.json_pointer import check_pointer, parts
from asya.protocol.raw_values import insert
from asya.protocol.slices import SetDue, SliceEnded, decode_message, encode_message, slice_header
from tests.doubles.envelopes import message, raw
from tests.doubles.nested_sets import DEPTHS, nested

HEADER = {
    "actor": "x-fan-in",
    "set_id": "set-1",
    "origin_id": "env-1",
    "slice_index": 2,
    "slice_count": 4,
    "aggregation_key": "/results",
}


@pytest.mark.rule("3.fan-in")
def test_a_header_is_read_back_and_its_enclosing_one_kept_as_it_is() -> None:
    outer = HEADER | {"set_id": "outer", "slice_index": 3, "later_field": [1, 2.50]}
    envelope = decode(message(headers={"x-asya-fan-in": HEADER | {"outer": outer}}))
    header = slice_header(envelope)
    assert header is not None
    assert (header.actor, header.set_id, header.slice_index, header.slice_count) == ("x-fan-in", "set-1", 2, 4)
    assert isinstance(header.outer, Raw)
    assert json.loads(bytes(header.outer)) == outer
    enclosing = header.enclosing
    assert enclosing is not None
    assert (enclosing.set_id, enclosing.slice_index, enclosing.enclosing) == ("outer", 3, None)


@pytest.mark.rule("9.branches")
@pytest.mark.parametrize(("index", "branch"), [(0, None), (1, "stats"), (3, "raw")])
def test_a_slice_knows_the_name_of_its_branch(index: int, branch: str | None) -> None:
    names = {"branches": ["stats", "features", "raw"], "slice_index": index}
    header = slice_header(decode(message(headers={"x-asya-fan-in": HEADER | names})))
    assert header is not None
    assert header.branch == branch


@pytest.mark.rule("9.branches", "9.set-size")
@pytest.mark.parametrize(
    "names",
    [["a", "b"], ["a", "b", "c", "d"], ["a", "a", "b"], ["a", "", "b"], ["a", "b", 3], "abc", ["a\n", "b", "c"], []],
)
def test_names_that_are_not_one_for_each_slice_are_malformed(names: Any) -> None:
    with pytest.raises(ValueError, match="x-asya-fan-in"):
        slice_header(decode(message(headers={"x-asya-fan-in": HEADER | {"branches": names}})))


@pytest.mark.rule("4.keys.sets", "9.branches")
def test_every_part_of_a_header_is_a_part_of_its_place() -> None:
    """A key vouches for the place of a slice: a holder of one slice can change nothing of it."""
    changed: dict[str, Any] = {
        "actor": "join",
        "set_id": "set-2",
        "origin_id": "env-2",
        "slice_index": 1,
        "slice_count": 4,
        "aggregation_key": "/other",
        "branches": ["a", "c", "b"],
    }
    named = HEADER | {"slice_count": 4, "branches": ["a", "b", "c"]}
    headers = [named, HEADER, *(named | {name: value} for name, value in changed.items() if named[name] != value)]
    found = [slice_header(decode(message(headers={"x-asya-fan-in": header}))) for header in headers]
    assert len({header.place for header in found if header is not None}) == len(headers) == 8


def test_an_envelope_that_is_not_a_slice_has_no_header() -> None:
    assert slice_header(decode(message())) is None
    assert slice_header(decode(message(headers={"x-asya-fan-in": None}))) is None
    assert not fan_in.is_slice(decode(message(headers={"x-asya-fan-in": None})))


@pytest.mark.rule("3.fan-in")
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"slice_index": 4}, "slice_index 4 is not within slice_count 4"),
        ({"slice_index": -1}, "slice_index -1 is not within"),
        ({"slice_count": 0, "slice_index": 0}, "slice_index 0 is not within slice_count 0"),
        ({"slice_count": "4"}, "slice_count"),
        ({"slice_count": 5002}, "slice_count is over 5001"),
        ({"slice_count": 10**44, "slice_index": 10**44 - 1}, "slice_count is over 5001"),
        ({"set_id": ""}, "set_id is empty"),
        ({"origin_id": "x" * 257}, "origin_id has 257 bytes"),
        ({"actor": "X!"}, "fan-in actor name 'X!' is not a DNS label"),
        ({"aggregation_key": "results"}, "it starts with '/'"),
        ({"aggregation_key": "/a~2"}, "write ~0"),
        ({"aggregation_key": "/a" * 101}, "100 parts at most; '/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a…' has 101"),
    ],
)
def test_a_malformed_header_is_named(change: dict[str, Any], problem: str) -> None:
    envelope = decode(message(headers={"x-asya-fan-in": HEADER | change}))
    with pytest.raises(ValueError, match=r"headers\.x-asya-fan-in") as caught:
        slice_header(envelope)
    assert problem in str(caught.value)
    assert fan_in.is_slice(envelope)


@pytest.mark.rule("9.nesting.depth", "9.set-size")
@pytest.mark.parametrize("depth", DEPTHS)
def test_a_header_in_too_many_sets_is_malformed(depth: int) -> None:
    envelope = decode(message(headers={"x-asya-fan-in": nested(depth, random.Random(depth), ("x-fan-in",))}))
    if depth <= MAX_ENCLOSING_SETS:
        assert slice_header(envelope) is not None
        return
    with pytest.raises(ValueError, match=r"headers\.x-asya-fan-in: outer has more than 16 enclosing sets"):
        slice_header(envelope)
    assert fan_in.is_slice(envelope)


def test_messages_about_sets_are_distinguished_from_envelopes() -> None:
    ended = SliceEnded(
        set_id="s",
        slice_index=1,
        slice_count=3,
        phase="failed",
        reason="RuntimeError",
        error=ErrorInfo(type="ValueError", message="\u00fc"),
    )
    assert decode_message(encode_message(ended)) == ended
    assert json.loads(encode_message(ended))["type"] == "slice-ended"
    due = SetDue(set_id="s", until=1.5)
    assert decode_message(encode_message(due)) == due
    for body in (message(), message(type="slice-ended"), b"", b"\xff", b'{"type":"set-due"}', b'"type"', b"[" * 99999):
        assert decode_message(body) is None


@pytest.mark.rule("9.set-size")
@pytest.mark.parametrize(("index", "count"), [(-5, 3), (3, 3), (0, 0), (1, 5002), (10**44, 10**44 + 1)])
def test_the_end_of_a_slice_that_no_set_has_is_no_message_about_a_set(index: int, count: int) -> None:
    largest = SliceEnded(set_id="s", slice_index=5000, slice_count=5001, phase="failed", reason="RuntimeError")
    content = json.loads(encode_message(largest))
    assert decode_message(encode_message(largest)) == largest
    assert decode_message(json.dumps(content | {"slice_index": index, "slice_count": count}).encode()) is None


@pytest.mark.rule("9.merge")
@pytest.mark.parametrize(
    ("document", "pointer", "expected"),
    [
        ({}, "/results", {"results": [1]}),
        ({"a": 1}, "", [1]),
        ({"a": {"b": 1}}, "/a/c", {"a": {"b": 1, "c": [1]}}),
        ({"a": {"b": 1}}, "/a/b", {"a": {"b": [1]}}),
        ({}, "/a/b/c", {"a": {"b": {"c": [1]}}}),
        (None, "/results", {"results": [1]}),
        ({"a": None}, "/a/b", {"a": {"b": [1]}}),
        ([0, {"x": 1}], "/1/y", [0, {"x": 1, "y": [1]}]),
        ([0, 1], "/0", [[1], 1]),
        ({}, "/", {"": [1]}),
        ({}, "/a~1b/~0", {"a/b": {"~": [1]}}),
        ({}, "/~01", {"~1": [1]}),
    ],
)
def test_results_are_inserted_at_the_pointer(document: Any, pointer: str, expected: Any) -> None:
    assert json.loads(bytes(insert(raw(document), pointer, Raw(b"[1]")))) == expected


@pytest.mark.parametrize(
    ("document", "pointer", "problem"),
    [
        ({"a": "text"}, "/a/b", "'b' cannot be put into a text"),
        ({"a": 1}, "/a/b", "into a number"),
        (True, "/a", "into a boolean"),
        ([1], "/1", "a list of 1 entries has no entry '1'"),
        ([1], "/-", "no entry '-'"),
        ([1], "/00", "no entry '00'"),
        ({}, "a", "starts with '/'"),
    ],
)
def test_a_pointer_to_a_missing_location_is_refused(document: Any, pointer: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        insert(raw(document), pointer, Raw(b"[1]"))
    assert problem in str(caught.value)


def test_members_off_the_path_keep_their_bytes() -> None:
    document = Raw(b'{"big": 1.50,  "deep": {"x": [1e3, "\\u00fc"]}, "a": {"n": 1.0}}')
    assert bytes(insert(document, "/a/b", Raw(b"[]"))) == (
        b'{"big":1.50,"deep":{"x": [1e3, "\\u00fc"]},"a":{"n":1.0,"b":[]}}'
    )


@given(st.lists(st.text(), max_size=4))
def test_any_keys_make_a_pointer_that_leads_back_to_them(keys: list[str]) -> None:
    pointer = "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)
    assert check_pointer(pointer) == pointer
    assert parts(pointer) == tuple(keys)


@given(st.text())
def test_a_text_is_a_pointer_or_refused_as_such(text: str) -> None:
    if text == "" or (text.startswith("/") and "~" not in text):
        assert check_pointer(text) == text
    elif not text.startswith("/"):
        with pytest.raises(ValueError, match="is not a JSON pointer"):
            parts(text)
