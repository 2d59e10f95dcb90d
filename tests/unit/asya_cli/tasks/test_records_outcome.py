"""What the state of a task means for a command: its exit code, and the next thing to type."""

import shlex
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from asya.protocol.errors import ErrorInfo
from asya.protocol.pause import PauseField, TaskPause
from asya.tasks.view import TaskView
from asya_cli.errors import ExitCode
from asya_cli.tasks.records import exit_code, failure_of, pause_of, resume_command

SINCE = "2026-01-01T00:00:00.000000Z"
TASK = TaskView(
    id="order 7",
    status="failed",
    progress_percent=48,
    actor="bill",
    reason="RuntimeError",
    error=ErrorInfo(type="KeyError", message="'total'"),
    created_at=SINCE,
    updated_at=SINCE,
    generation=0,
)


@pytest.mark.parametrize(
    ("status", "code"),
    [("pending", 0), ("running", 0), ("succeeded", 0), (None, 0), ("failed", 3), ("canceled", 3), ("paused", 4)],
)
def test_the_exit_code_tells_the_state_of_a_task(status: str | None, code: int) -> None:
    assert exit_code(status) == code


@pytest.mark.parametrize(
    ("fields", "answers"),
    [
        ([PauseField(name="approved", type="boolean")], {"approved": True}),
        ([PauseField(name="note", type="string"), PauseField(name="n", type="number")], {"note": "…", "n": 0}),
        ([PauseField(name="to", type="string", options=("it's mail", "web"))], {"to": "it's mail"}),
        ([PauseField(name="to", type="array", options=("mail",))], {"to": ["mail"]}),
        ([PauseField(name="a", type="string", required=False), PauseField(name="b", type="object")], {"b": {}}),
        (
            [PauseField(name="a", type="string", default="x"), PauseField(name="b", type="number", default=3)],
            {"a": "x"},
        ),
        ([], None),
    ],
)
def test_the_line_that_answers_a_pause_can_be_pasted(fields: list[PauseField], answers: dict[str, Any] | None) -> None:
    line = resume_command("order 7", TaskPause(prompt="?", fields=tuple(fields), since=SINCE), " --state 'my state'")
    words = shlex.split(line)
    assert words[:3] == ["asya", "resume", "order 7"]
    assert words[-2:] == ["--state", "my state"]
    assert words[-4:-2] == ["--pause", SINCE]
    given = words[3:-4]
    assert (msgspec.json.decode(given[1]) if given else None) == answers


def test_a_failure_tells_where_why_and_what_to_type() -> None:
    error = failure_of(TASK, " --namespace shop")
    assert error.problem == "order 7 failed (RuntimeError) at bill: KeyError: 'total'"
    assert "`asya replay 'order 7' --namespace shop`" in error.advice
    assert error.code is ExitCode.TASK_FAILED
    canceled = failure_of(replace(TASK, status="canceled", error=None), "")
    assert (canceled.problem, "replay" in canceled.advice) == ("order 7 was canceled", False)


def test_a_pause_tells_its_question() -> None:
    pause = TaskPause(prompt="Publish?", fields=(PauseField(name="approved", type="boolean"),), since=SINCE)
    error = pause_of(replace(TASK, status="paused"), pause, "")
    assert error.problem == "order 7 waits for an answer: Publish?"
    assert (
        error.advice
        == """Answer it: asya resume 'order 7' --input '{"approved":true}' --pause 2026-01-01T00:00:00.000000Z"""
    )
    assert error.code is ExitCode.PAUSED
