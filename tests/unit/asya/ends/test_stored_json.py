"""protocol §11.keys.body: people can read a stored envelope, and no envelope grows beyond what its writer can hold."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asya.ends.stored_json import GROWTH, INDENTED_BYTES, indented

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab"\\[]{},:\n'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('ab"\\[,'), inner),
    max_leaves=20,
)


def nested(value: str, depth: int) -> bytes:
    return f'{{"payload":{"[" * depth}{value}{"]" * depth}}}'.encode()


@pytest.mark.rule("11.keys.body")
@settings(max_examples=40)
@given(VALUES)
def test_an_envelope_is_indented_by_two(payload: Any) -> None:
    body = msgspec.json.encode(
        {"id": "order-7", "route": {"prev": ["greet"], "curr": "", "next": []}, "payload": payload}
    )
    assert indented(body) == msgspec.json.format(body, indent=2)


@pytest.mark.rule("11.keys.body")
@settings(max_examples=40)
@given(depth=st.integers(1, 400), zeros=st.integers(1, 400))
def test_the_depth_of_a_payload_bounds_its_object(depth: int, zeros: int) -> None:
    body = nested(",".join("0" * zeros), depth)
    stored = indented(body)
    assert json.loads(stored) == json.loads(body)
    assert len(stored) <= GROWTH * len(body)
    full = msgspec.json.format(body, indent=2)
    assert stored == full or len(full) > (GROWTH - 1) * len(body)


@pytest.mark.rule("11.keys.body")
def test_a_large_envelope_is_stored_as_it_is() -> None:
    small, large = (nested(f'"{"x" * size}"', 0) for size in (INDENTED_BYTES - 100, INDENTED_BYTES))
    assert indented(small) != small
    assert indented(large) == large
