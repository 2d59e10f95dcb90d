"""Which tasks of a list are asked for (`protocol §13.list.filters`)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.api_errors import ApiError
from asya.protocol.errors import ErrorInfo
from asya.protocol.hops import fold, hop_records
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import merge
from asya.tasks.listing import TaskFilter, read_filter
from asya.tasks.view import list_view, task_view
from tests.doubles.listed_tasks import filters, records
from tests.doubles.tasks import at, event


@given(filters())
def test_the_parameters_of_a_query_are_read_as_they_were_written(wanted: TaskFilter) -> None:
    assert read_filter(wanted.parameters()) == wanted


@pytest.mark.rule("13.list.filters")
@given(records(), filters(), st.booleans())
@pytest.mark.slow
def test_a_record_of_a_listed_task_is_never_left_out(record: TaskRecord, wanted: TaskFilter, has_hop: bool) -> None:
    hops = fold(hop_records([event(record.id, "received", 1)] if has_hop else []), record.generation)
    task = list_view(task_view(record, hops, at(60)))
    if wanted.matches(task):
        assert wanted.may_match(record, at(60))
    elif record.is_terminal:
        assert not wanted.may_match(record, at(60))


@pytest.mark.rule("13.list.filters")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("KeyError", True),
        ("'price'", True),
        ("order 7", True),
        ("order #", True),
        ("SliceFailed", True),
        ("keyerror", False),
    ],
)
def test_an_error_is_found_by_its_text_its_reason_and_its_group(text: str, found: bool) -> None:
    record = merged_failure("KeyError", "'price' of order 7\nand more", "SliceFailed")
    assert TaskFilter(error=text).matches(list_view(task_view(record, fold([], 0), at(9)))) is found


def merged_failure(kind: str, message: str, reason: str) -> TaskRecord:
    return merge(None, event("t", "failed", error=ErrorInfo(type=kind, message=message), reason=reason))


@pytest.mark.rule("13.list.filters", "13.errors")
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tool": ""}, "tool must have 1 to 1,024 characters"),
        ({"error": "x" * 1025}, "error must have 1 to 1,024 characters"),
        ({"since": "2h"}, "since: '2h' is no RFC 3339 time"),
        ({"until": "2026-11-20"}, "until: '2026-11-20' is no RFC 3339 time"),
        ({"roots": "yes"}, "roots must be true or false"),
        ({"status": "done"}, "status must be one of pending, running"),
    ],
)
def test_a_wrong_filter_is_named(parameters: dict[str, str], message: str) -> None:
    with pytest.raises(ApiError) as raised:
        read_filter(parameters)
    assert raised.value.message.startswith(message)
    assert (raised.value.status, raised.value.field) == (400, next(iter(parameters)))


@pytest.mark.parametrize(
    ("wanted", "reads"),
    [
        ({}, False),
        ({"owner": "AIDA", "since": "2026-11-20T09:00:00.000000Z"}, False),
        ({"status": "succeeded"}, True),
        ({"status": "failed"}, True),
        ({"actor": "bill"}, True),
        ({"roots": True}, True),
    ],
)
def test_keys_decide_as_far_as_they_can(wanted: dict[str, Any], reads: bool) -> None:
    assert TaskFilter(**wanted).reads_records is reads
