"""Groups of failed tasks (`protocol §13.failures`)."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.errors import ErrorInfo
from asya.protocol.hops import fold
from asya.protocol.task import TaskRecord
from asya.tasks.failures import FailureGroup, failure_text, group_of, kind_of, merged
from asya.tasks.view import list_view, task_view
from tests.doubles.listed_tasks import meshes, records
from tests.doubles.tasks import at

UUIDS = ("6b1ffbc0-5d1e-4c8a-9f61-2a7d1f0f9a11", "1F6A0A54-3f0e-4f8e-9d3c-0f6f1c9f7f10")


@pytest.mark.rule("13.failures")
@pytest.mark.parametrize(
    ("name", "message", "kind"),
    [
        ("KeyError", "'price'", "KeyError: 'price'"),
        ("ValueError", f"order {UUIDS[0]} has 3.5 parts\nmore", "ValueError: order # has # parts"),
        ("ValueError", f"order {UUIDS[1]} has 12 parts", "ValueError: order # has # parts"),
        ("", "no order 3f2504e0-4f89-11d3-9a0c-0305e82c3301", "no order #"),
        ("", "this function has version 08822cf5fe1a of it", "this function has version # of it"),
        ("", "version 0a8bcf2 and 1234567", "version # and #"),
        ("", "job run 00bss0ojnopziwff (asya.shop.risk.0000000003) ended", "job run # (asya.shop.risk.#) ended"),
        ("", "Deadline 2026-11-25T22:38:21.037834Z passed, 5s after", "Deadline # passed, #s after"),
        ("", "s3://data/part-00017 is not utf8, 250ms late, row17", "s3://data/part-# is not utf8, #ms late, row#"),
        ("", "version 1.2.3 of x86", "version # of x86"),
        ("ValueError", "\x1b[31mred\x07\tor not\u202e", "ValueError: #[###or not#"),
        ("OSError", "disk " * 100, f"OSError: {'disk ' * 100}"[:300]),
        ("", "", ""),
        ("shop.Step2Error", "2 of 3", "shop.Step2Error: # of #"),
        ("shop.Two\nLines", "2 of 3", "shop.Two"),
        (
            "py4j.protocol.Py4JJavaError",
            "calling o59.collectToPython",
            "py4j.protocol.Py4JJavaError: calling o#.collectToPython",
        ),
        (
            "",
            "a Py4JJavaError and an S3Exception of S3AFileSystem",
            "a Py4JJavaError and an S3Exception of S3AFileSystem",
        ),
        ("", "as com.amazon.s3.v2.S3Client7 says", "as com.amazon.s3.v2.S3Client7 says"),
        ("", "psycopg2.OperationalError in host17", "psycopg2.OperationalError in host#"),
        ("", "cannot cast int64 to UINT8, datetime64[ns] or f32", "cannot cast int64 to UINT8, datetime64[ns] or f32"),
        ("", "'utf-8' codec can't decode byte 0xff in 10", "'utf-8' codec can't decode byte # in #"),
        ("", "sha256 of base64 over HTTP2 from s3a://b/k7", "sha256 of base64 over HTTP2 from s3a://b/k#"),
        ("", "<Order object at 0x7f21c0a3d5e0>", "<Order object at #>"),
        ("", "int6 of S33 and row64 in shop/v2.Total", "int# of S# and row# in shop/v#.Total"),
        ("", "read part-00000-6b1ffbc0-5d1e-4c8a-9f61-2a7d1f0f9a11-c000.parquet", "read part-#-#-c#.parquet"),
    ],
)
def test_an_error_is_grouped_without_numbers_and_ids_but_with_the_names_of_types(
    name: str, message: str, kind: str
) -> None:
    assert kind_of(message, name) == kind


@pytest.mark.parametrize(
    "piece", ["A", "a", "_", "A_", "Ae", "a.", "A.", "a1", "0", "0-", "é", "#", "0x1", "S3", "Error", "a.A"]
)
def test_no_text_of_a_caller_takes_long_to_group(piece: str) -> None:
    """An operator's list reads the errors of thousands of tasks."""
    text = piece * (16_384 // len(piece))
    began = time.process_time()
    kind_of(text, "KeyError")
    assert time.process_time() - began < 1  # it takes 0.1 s; the square of the length took 10 s


@pytest.mark.parametrize(
    ("status", "error", "reason", "text"),
    [
        ("failed", ErrorInfo(type="KeyError", message="'x'"), "RuntimeError", "KeyError: 'x'"),
        ("failed", None, "Timeout", "Timeout"),
        ("canceled", None, "Canceled", "Canceled"),
        ("succeeded", None, "Completed", ""),
        ("failed", None, None, ""),
    ],
)
def test_a_task_without_an_error_has_its_reason(status: str, error: Any, reason: str | None, text: str) -> None:
    assert failure_text(status, error, reason) == text


@pytest.mark.rule("13.failures.pages")
@given(meshes(), st.integers(0, 25))
@pytest.mark.slow
def test_pages_add_up_to_the_groups_of_all_tasks(tasks: list[TaskRecord], size: int) -> None:
    groups = [group_of(task) for task in tasks]
    whole = merged(groups)
    assert merged((*merged(groups[:size]), *merged(groups[size:]))) == whole
    assert sum(group.count for group in whole) == len(tasks)
    assert [group.count for group in whole] == sorted((group.count for group in whole), reverse=True)
    for group in whole:
        members = [task for task in tasks if (group_of(task).actor, group_of(task).error) == (group.actor, group.error)]
        times = {task.id: task.created_at for task in members}
        assert (group.first, group.last) == (min(times.values()), max(times.values()))
        assert times[group.example] == group.last


@pytest.mark.rule("13.failures")
@given(records())
def test_a_task_that_failed_or_runs_again_has_the_error_of_its_group(record: TaskRecord) -> None:
    view = list_view(task_view(record, fold([]), at(-1_000_000)))
    if view.retry is not None:
        assert view.error_group == group_of(view, view.retry.error).error
    else:
        assert view.error_group == ((group_of(record).error or None) if record.status == "failed" else None)


def test_the_example_of_a_group_is_its_last_task() -> None:
    early = FailureGroup(actor="a", error="E", count=2, first="09:00", last="09:10", example="x")
    late = FailureGroup(actor="a", error="E", count=1, first="09:20", last="09:20", example="y")
    assert merged([early, late]) == merged([late, early])
    assert merged([early, late])[0] == FailureGroup(
        actor="a", error="E", count=3, first="09:00", last="09:20", example="y"
    )
