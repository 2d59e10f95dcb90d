"""Planted mistakes about what the mesh says of tasks and job runs (`protocol §13.retry`, `§13.operations.runs`)."""

from typing import Any

from msgspec.structs import replace

from asya.heavy.lambdas import result_routing
from asya.protocol import task_merge
from asya.protocol.events import TaskEvent
from asya.protocol.task import TaskRecord
from tests.simulation.mistake import found_by, wrap


def _take_the_retry_that_came_last(real: Any, record: TaskRecord | None, event: TaskEvent, **more: Any) -> Any:
    is_retried = record is not None and event.data.retry is not None
    return real(replace(record, retry=None) if record is not None and is_retried else record, event, **more)


def _believe_the_job_run(_real: Any, *_args: Any) -> str:
    return "succeeded"


_COUNTED = "test_13_each_envelope_counts_once_however_often_routing_is_interrupted"

MISTAKES = (
    found_by(
        "shows the retry that was reported last",
        wrap(task_merge, "merge", _take_the_retry_that_came_last),
        "unit/asya/protocol/test_task_merge.py::test_the_last_retry_stays_in_any_order",
    ),
    found_by(
        "counts each result of a job run as a success",
        wrap(result_routing, "outcome_of", _believe_the_job_run),
        f"unit/asya/heavy/lambdas/test_result_routing_refusals.py::{_COUNTED}[2]",
    ),
)
