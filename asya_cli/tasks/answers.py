"""Gives one answer to the same question of many paused tasks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import UNSET

from asya.protocol import states
from asya_cli.errors import CommandError
from asya_cli.output.text import counted, echo, one_line
from asya_cli.tasks.bulk import for_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asya.capabilities.pauses.resume_input import Answers
    from asya.client.mesh_client import MeshClient
    from asya.tasks.view import TaskView
    from asya_cli.tasks.selection import Selection


@dataclass(frozen=True)
class ResumedTask:
    """A task after the call that resumes it."""

    id: str
    status: str = states.RUNNING

    def __str__(self) -> str:
        return one_line(self.id)


def answer_all(
    mesh: MeshClient, selection: Selection, answers: bytes, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Answer the selected pauses, oldest task first.

    Each call names the pause that was selected: a task that pauses again meanwhile keeps its new question. A command that ends
    early leaves tasks paused, and the next one takes those.

    Args:
        mesh: The mesh.
        selection: The paused tasks.
        answers: A JSON object with the answers by field name.
        dry_run: Only show the tasks, and which of them refuse the answers.
        yes: Do not ask at a terminal.
        as_json: Print JSON lines.

    Raises:
        CommandError: The tasks wait at several actors, refuse the answers, or the user said no.
    """
    from asya.capabilities.pauses.resume_input import read_request

    read = read_request(b'{"input": ' + answers + b"}")
    paused = [task for task in selection.tasks(mesh) if task.pause is not None]
    tasks = [task for task in paused if task.pause is not None and task.pause.until is UNSET]
    if len(tasks) < len(paused):
        echo(f"left out, because they wait for a time: {counted(len(paused) - len(tasks), 'task')}", err=True)
    if not tasks:
        selection.check(mesh)
    _check_one_question(tasks)
    problems = {task.id: problem for task in tasks if (problem := _problem(task, read)) is not None}
    if problems and len(problems) == len(tasks):
        raise CommandError(f"no task takes this answer: {next(iter(problems.values()))}", "Nothing was changed.")
    if problems:
        echo(f"{counted(len(problems), 'task')} of {len(tasks)} will refuse this answer", err=True)

    if tasks and not dry_run:
        echo(_question(tasks), err=True)

    def answer(task: TaskView) -> ResumedTask:
        mesh.resume(task.id, answers, since=task.pause.since if task.pause is not None else None)
        return ResumedTask(task.id)

    def describe(task: TaskView) -> str:
        problem = problems.get(task.id)
        question = task.pause.prompt if task.pause is not None else ""
        return question if problem is None else f"{question}  (refuses the answer: {problem})"

    for_each(
        sorted(tasks, key=lambda task: task.created_at),
        "resume",
        answer,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
        describe=describe,
    )


def _check_one_question(tasks: Sequence[TaskView]) -> None:
    """Check that the tasks wait at one actor, whose question they share.

    Raises:
        CommandError: They wait at several actors.
    """
    counts = Counter(task.actor or "?" for task in tasks)
    if len(counts) > 1:
        places = ", ".join(f"{one_line(actor)} ({count})" for actor, count in counts.most_common())
        raise CommandError(f"the selected tasks wait at {len(counts)} actors: {places}", "Choose one with --actor.")


def _question(tasks: Sequence[TaskView]) -> str:
    """Return what the tasks ask, such as `approve asks: Pay order 1? (and 11 other questions)`."""
    first, *others = dict.fromkeys(task.pause.prompt for task in tasks if task.pause is not None)
    more = f" (and {counted(len(others), 'other question')})" if others else ""
    return f"{one_line(tasks[0].actor or '?')} asks: {one_line(first)}{more}"


def _problem(task: TaskView, answers: Answers) -> str | None:
    """Return why a task refuses the answers; None if they fit its fields."""
    from asya.capabilities.pauses.resume_input import InvalidInputError, complete_answers

    try:
        complete_answers(task.pause.fields if task.pause is not None else (), answers)
    except InvalidInputError as error:
        return "; ".join(f"{name} {problem}" for name, problem in error.fields.items())
    return None
