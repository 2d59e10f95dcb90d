"""Planted mistakes in waits for a time."""

from datetime import timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from asya.capabilities.pauses import waiting
from asya.capabilities.pauses.aws import held_envelopes
from asya.capabilities.pauses.aws.held_envelopes import HeldEnvelopes, WaitKey
from asya.capabilities.pauses.lambdas import wait
from asya.capabilities.pauses.lambdas.wait import WaitReleases
from asya.protocol import task_merge
from asya.protocol.events import TaskEvent
from asya.protocol.task import TaskRecord
from asya.protocol.wait import TaskWait
from asya.tasks.aws.paused_tasks import PausedTasks
from tests.simulation.inputs.features import Features
from tests.simulation.mistake import Mistake, found_by, substitute, wrap

WAITS: Features = frozenset({"waits", "cancels"})


def _replace_before_the_send(real: Any, held: Any, key: Any) -> Any:
    found = real(held, key)
    if isinstance(key, WaitKey) and found is not None:
        held.mark_resumed(key, at="2026-11-20T12:00:00.000000Z")
    return found


def _report_progress_only(real: Any, held: Any, actor: str, **more: Any) -> Any:
    return replace(real(held, actor, **more), status="processing")


def _due_an_hour_early(real: Any, found: Any, now: Any) -> Any:
    return real(found, now + timedelta(hours=1))


def _write_over(_real: Any, s3: Any, *, bucket: str, key: str, body: bytes) -> bool:
    s3.put_object(Bucket=bucket, Key=key, Body=body)
    return True


def _of_any_attempt(real: Any, envelope_id: str, generation: int, position: int, _attempt: int) -> Any:
    return real(envelope_id, generation, position, 1)


def _mark_any(real: Any, record: TaskRecord, wait: TaskWait) -> Any:
    return real(record, record.wait or wait)


def _take_the_wait_that_came_last(real: Any, record: TaskRecord | None, event: TaskEvent, **more: Any) -> Any:
    is_late = record is not None and event.status == "waiting"
    return real(replace(record, wait=None) if record is not None and is_late else record, event, **more)


def _forget_the_wait_of_an_end(real: Any, record: TaskRecord | None, event: TaskEvent, **more: Any) -> Any:
    if record is not None and record.is_terminal and event.status == "waiting":
        return record
    return real(record, event, **more)


def _at_the_deadline_too(real: Any, hop: Any, **more: Any) -> Any:
    deadline = hop.deadline
    return real(replace(hop, deadline=deadline + timedelta(microseconds=1)) if deadline is not None else hop, **more)


_WAITS = "unit/asya/capabilities/pauses/lambdas"
_RECORDS = "unit/asya/protocol/test_task_wait.py"
_at_waits = partial(Mistake, kind="fault-free", seed=3, features=WAITS)

MISTAKES = (
    _at_waits("sends nothing after a wait", substitute(WaitReleases, "finish", lambda *_: False)),
    _at_waits(
        "sends what waits before it is due",
        (
            substitute(wait, "is_due", lambda wait, _: wait is not None and not wait.is_sent),
            wrap(PausedTasks, "due_waits", _due_an_hour_early),
        ),
    ),
    Mistake(
        "replaces a held envelope before it has sent it",
        wrap(HeldEnvelopes, "load", _replace_before_the_send),
        "crashes",
        seed=6,
        features=WAITS,
    ),
    _at_waits("reports a wait as mere progress", wrap(waiting, "waiting_report", _report_progress_only)),
    found_by(
        "writes over the envelope that another delivery holds",
        wrap(held_envelopes, "put_if_absent", _write_over),
        f"{_WAITS}/test_wait.py::test_of_two_deliveries_at_once_the_one_that_holds_first_counts",
    ),
    found_by(
        "holds all attempts of a retry under one key",
        wrap(wait, "WaitKey", _of_any_attempt),
        f"{_WAITS}/test_wait_retry_wait.py::test_each_attempt_has_a_wait_of_its_own",
    ),
    found_by(
        "marks a later wait as sent",
        wrap(wait, "as_sent", _mark_any),
        f"{_WAITS}/test_wait_release.py::test_a_slow_sweep_marks_no_later_wait_as_sent",
    ),
    found_by(
        "shows the wait that was reported last",
        wrap(task_merge, "merge", _take_the_wait_that_came_last),
        f"{_RECORDS}::test_only_a_later_wait_counts",
        f"{_RECORDS}::test_a_sent_wait_is_not_reported_again",
    ),
    found_by(
        "forgets the wait of a task that has ended provisionally",
        wrap(task_merge, "merge", _forget_the_wait_of_an_end),
        f"{_RECORDS}::test_an_ended_task_has_a_wait_because_its_end_may_be_provisional",
    ),
    found_by(
        "holds an envelope until its very deadline",
        wrap(waiting, "due", _at_the_deadline_too),
        f"{_WAITS}/test_wait.py::test_a_wait_beyond_the_deadline_fails_at_entry",
    ),
)
