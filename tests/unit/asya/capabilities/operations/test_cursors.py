"""Cursors belong to their query, and a forged one is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.capabilities.operations.cursors import decode_cursor, encode_cursor
from asya.protocol.api_errors import ApiError


@given(st.tuples(st.text(max_size=20), st.text(max_size=20)))
def test_a_cursor_is_read_back(parts: tuple[str, str]) -> None:
    assert decode_cursor("logs", encode_cursor("logs", parts), 2) == parts


@pytest.mark.parametrize(
    ("scope", "cursor", "length"),
    [
        ("other", encode_cursor("logs", ("a",)), 1),
        ("logs", encode_cursor("logs", ("a",)), 2),
        ("logs", encode_cursor("logs", ("a",))[:-2], 1),
        ("logs", "é", 1),
        ("logs", "", 1),
        ("logs", "W10", 1),
        ("logs", "a" * 9000, 1),
    ],
)
def test_any_other_cursor_is_refused(scope: str, cursor: str, length: int) -> None:
    with pytest.raises(ApiError) as refused:
        decode_cursor(scope, cursor, length)
    assert (refused.value.status, refused.value.code) == (400, "invalid_cursor")
