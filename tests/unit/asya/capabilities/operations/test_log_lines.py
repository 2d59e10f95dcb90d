"""Which lines belong to an envelope, and the bounds of a page of them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.capabilities.operations.log_lines import (
    LINE_LIMIT,
    PAGE_LIMIT,
    LogLine,
    bounded,
    mentions,
    read_log_query,
    search_pattern,
)
from asya.protocol.api_errors import ApiError


@pytest.mark.rule("13.operations.logs.own")
@pytest.mark.parametrize(
    ("message", "is_about"),
    [
        ('{"envelope_id": "order-7", "message": "failed"}', True),
        ("redrive of order-7.", True),
        ("'order-7'", True),
        ('{"envelope_id": "order-71"}', False),
        ('{"envelope_id": "my-order-7"}', False),
        ('{"envelope_id": "order-7-1"}', False),
        ('{"envelope_id": "order-7.1"}', False),
        ("order_7", False),
    ],
)
def test_an_id_within_another_id_is_no_mention(message: str, is_about: bool) -> None:
    assert mentions(message, "order-7") is is_about


@given(st.text(min_size=1, max_size=20))
def test_the_line_of_the_mesh_about_any_id_is_found(envelope_id: str) -> None:
    """The log writes ids as JSON, in ASCII or not."""
    try:
        message = msgspec.json.encode({"envelope_id": envelope_id}).decode()
    except UnicodeEncodeError:
        return
    assert mentions(message, envelope_id)
    assert search_pattern(envelope_id).strip('"') in message


def test_a_filter_takes_the_longest_part_that_is_written_alike() -> None:
    assert search_pattern('a"order 42\\é') == '"order 42"'
    assert search_pattern("é") == ""


@pytest.mark.rule("13.operations.limits")
def test_a_page_fits_into_an_answer_whatever_the_lines_contain() -> None:
    lines = [LogLine(id=str(number), actor="a", line='"' * 200_000) for number in range(500)]
    page = bounded(lines)
    assert len(page) == 500
    assert page[0].truncated
    assert len(page[0].line) == LINE_LIMIT
    assert len(msgspec.json.encode(msgspec.json.encode(page).decode())) < 6_000_000
    assert sum(len(line.line) for line in page) < PAGE_LIMIT
    short = [LogLine(id="1", actor="a", line="é")]
    assert bounded(short) == short


@pytest.mark.parametrize(
    "parameters", [{"limit": "0"}, {"limit": "501"}, {"limit": "x"}, {"since": "1h"}, {"source": "all"}]
)
def test_a_wrong_parameter_is_named(parameters: dict[str, str]) -> None:
    with pytest.raises(ApiError) as refused:
        read_log_query(parameters)
    assert refused.value.field == next(iter(parameters))
