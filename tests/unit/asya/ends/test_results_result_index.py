"""protocol §11, the index of results: a row for each end, in objects by day."""

import json
from datetime import UTC, datetime

import pytest

from asya.ends.results import ResultRow, day_of, recent_object, result_row
from asya.protocol.codec import decode
from tests.doubles.envelopes import message, status

NOW = datetime(2025, 11, 19, 0, 0, 1, tzinfo=UTC)
ERROR = {"type": "shop.BadOrder", "message": "x" * 900, "mro": ["ValueError"], "traceback": "…"}


def row(**members: object) -> ResultRow:
    return result_row(
        decode(message(**members)),
        namespace="shop",
        result_uri="s3://bucket/results/succeeded/env-1.json",
        recorded_by="x-sink",
        now=NOW,
    )


def block(**changes: object) -> dict[str, object]:
    times = {"created_at": "2025-11-18T14:30:00Z", "updated_at": "2025-11-18T14:30:45.123456Z"}
    return status(**({"phase": "succeeded", "reason": "Completed"} | times | changes))


@pytest.mark.rule("11.index")
def test_a_row_tells_how_it_ended_when_and_where_it_is() -> None:
    found = row(status=block(), route={"prev": ["prep", "infer"], "curr": "", "next": []}, payload={"a": 1})
    assert (found.phase, found.reason, found.last_actor, found.route) == (
        "succeeded",
        "Completed",
        "infer",
        ("prep", "infer"),
    )
    assert (found.created_at, found.ended_at) == ("2025-11-18T14:30:00.000000Z", "2025-11-18T14:30:45.123456Z")
    assert (found.seconds, found.payload_bytes, day_of(found)) == (45.123456, len('{"a":1}'), "2025-11-18")
    assert (found.root_id, found.parent_id) == ("env-1", None)


@pytest.mark.rule("11.index.tool", "3.tool")
@pytest.mark.parametrize(
    ("header", "tool"), [("order", "order"), ("", None), ("x" * 129, None), (7, None), (None, None)]
)
def test_a_row_names_the_tool_that_the_envelope_carries(header: object, tool: str | None) -> None:
    assert row(status=block(), headers={"x-asya-tool": header}).tool == tool


def test_the_error_is_there_to_be_counted_not_read() -> None:
    found = row(status=block(phase="failed", reason="RuntimeError", error=ERROR))
    assert (found.error_type, len(found.error_message or "")) == ("shop.BadOrder", 500)


def test_times_that_nobody_can_read_do_no_harm() -> None:
    """A status comes from outside: the codec refuses what is no time; what is missing counts as now, or as unknown."""
    found = row(status={"phase": "succeeded"})
    assert (found.ended_at, found.created_at, found.seconds) == ("2025-11-19T00:00:01.000000Z", None, None)


def test_the_same_rows_make_the_same_object_and_each_is_a_line() -> None:
    rows = [row(status=block(), payload=number) for number in range(3)]
    key, body = recent_object("2025-11-18", rows)
    assert (key, body) == recent_object("2025-11-18", rows)
    assert key.startswith("index/recent/dt=2025-11-18/")
    assert key.endswith(".jsonl")
    assert key != recent_object("2025-11-18", rows[:2])[0]
    lines = body.decode().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["env-1"] * 3
    assert list(json.loads(lines[0])) == list(ResultRow.__struct_fields__)
