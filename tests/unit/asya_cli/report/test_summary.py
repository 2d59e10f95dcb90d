"""What ended since a time, from the rows of the index."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from asya.ends.results import ResultRow
from asya_cli.report.summary import Cause, Ends, summarize

SINCE = "2026-11-24T22:00:00.000000Z"


def row(name: str, minute: int, phase: str = "succeeded", **more: Any) -> ResultRow:
    return replace(
        ResultRow(
            namespace="shop", id=name, generation=0, parent_id=None, root_id=name, phase=phase, reason=None,
            last_actor="bill", route=("check",), attempt=1, error_type=None, error_message=None, created_at=None,
            ended_at=f"2026-11-24T22:{minute:02d}:00.000000Z", seconds=float(minute), payload_bytes=1, result_uri="s3://b/k",
            recorded_by="x-sink",
        ),
        **more,
    )  # fmt: skip


def test_tasks_are_counted_by_their_start_and_failures_by_their_cause() -> None:
    summary = summarize(
        [
            row("a", 1),
            row("b", 9),
            row("c", 3, "failed", error_type="KeyError", error_message="order 7"),
            row("d", 4, "canceled", route=(), last_actor="ship"),
            row("slice", 2, "failed", parent_id="b", root_id="b", error_type="KeyError", error_message="order 12"),
            row("e", 2, "failed", reason="Timeout", seconds=None, last_actor="check", route=()),
            row("before", 5, ended_at="2026-11-24T21:59:59.000000Z"),
        ],
        SINCE,
    )
    assert summary.ends == (Ends("check", 2, 2, 0, 3.0, 9.0), Ends("ship", 0, 0, 1, 4.0, 4.0))
    assert summary.causes == (Cause("bill", "KeyError: order #", 2), Cause("check", "Timeout", 1))


def test_an_end_counts_once_and_the_later_generation_holds() -> None:
    again = row("a", 2, generation=1)
    summary = summarize([again, row("a", 5, "failed"), row("a", 5, "failed"), again], SINCE)
    assert summary.ends == (Ends("check", 1, 0, 0, 2.0, 2.0),)
    assert summary.causes == ()


def test_one_tool_has_its_own_failures_those_of_slices_of_a_task_at_work_too() -> None:
    rows = [
        row("a", 1, tool="order"),
        row("s", 2, "failed", parent_id="at-work", root_id="at-work", tool="order"),
        row("b", 3, "failed", tool="ship"),
        row("c", 4, "failed"),
    ]
    summary = summarize(rows, SINCE, tool="order")
    assert summary.ends == (Ends("check", 1, 0, 0, 1.0, 1.0),)
    assert summary.causes == (Cause("bill", "no error", 1),)
    assert summarize(rows, SINCE, "ship", "order").ends == ()


def test_one_start_has_its_own_failures() -> None:
    rows = [
        row("a", 1),
        row("s", 2, "failed", parent_id="a", root_id="a"),
        row("b", 3, "failed", route=("ship",)),
    ]
    summary = summarize(rows, SINCE, "check")
    assert [each.start for each in summary.ends] == ["check"]
    assert summary.causes == (Cause("bill", "no error", 1),)


def test_nothing_has_ended() -> None:
    summary = summarize([], SINCE)
    assert (summary.ends, summary.causes, summary.jobs) == ((), (), ())


def test_settled_failures_are_counted_beside_the_open_ones() -> None:
    rows = [row(f"t{number}", 1, "failed", reason="RuntimeError") for number in range(3)]
    summary = summarize(rows, "", settled={"t0", "t1"})
    assert [(cause.count, cause.settled) for cause in summary.causes] == [(1, 2)]
    assert summary.ends[0].failed == 3  # what ended in the time stays as it ended
    summary = summarize(rows, "", settled={"t0", "t1", "t2"})
    assert [(cause.count, cause.settled) for cause in summary.causes] == [(0, 3)]
