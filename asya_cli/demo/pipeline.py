"""Sends one envelope through the pipeline, follows it, approves it, and collects its result."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace
from rich.markup import escape

from asya.client.watch import watch
from asya.protocol import names
from asya_cli.demo.report import JobRun, read_job_runs
from asya_cli.errors import CommandError
from asya_cli.progress.actors import Progress
from asya_cli.progress.display import Display, SlicePoller

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from asya.client.mesh_client import MeshClient
    from asya.protocol.envelope import Envelope
    from asya.protocol.pause import TaskPause
    from asya.tasks.view import TaskView
    from asya_cli.demo.report import Stopwatch
    from asya_cli.output.console import Console

APPROVAL = "approve-report"


def with_approval(envelope: Envelope) -> Envelope:
    """Return the envelope with a pause in its route, between the fan-in and the report."""
    actors = envelope.route.next
    position = actors.index(names.FAN_IN) + 1
    route = replace(envelope.route, next=(*actors[:position], APPROVAL, *actors[position:]))
    return replace(envelope, route=route)


def full_route(route: tuple[str, ...]) -> tuple[str, ...]:
    """Return the route with x-resume after the pause, as the envelope passes it."""
    return tuple(name for actor in route for name in ((actor, names.RESUME) if actor == APPROVAL else (actor,)))


def answers(pause: TaskPause, console: Console) -> bytes:
    """Return the answers to a pause as JSON, from the terminal. Without a terminal the mesh file's defaults apply."""
    console.print(f"  [yellow]‖[/] {escape(pause.prompt)}")
    replies: dict[str, object] = {}
    for field in pause.fields:
        question = f"    {escape(field.prompt or field.name)} [dim]({escape(str(field.default))})[/]"
        if not (console.is_terminal and sys.stdin.isatty()):
            console.print(f"{question}: [dim]no terminal, so the default applies[/]")
        elif answer := console.input(f"{question}: ").strip():
            replies[field.name] = answer
    console.print()
    return msgspec.json.encode(replies)


SLICES_PASS = ("delay-statistics",)
"""The actors of the slices. The route of the origin does not name them."""

RESULT = "result.json"
REPORT = "report.html"
TIMEOUT_SECONDS = 15 * 60.0
"""The time limit of the pipeline."""


@dataclass(frozen=True)
class Outcome:
    """The files of a pipeline that succeeded.

    Attributes:
        uri: Address of the object that x-sink wrote.
        result, report: Local copies of that object and of the report.
        task_id, runs: The task and its job runs.
    """

    uri: str
    payload: dict[str, Any]
    result: Path
    report: Path
    task_id: str
    runs: list[JobRun]


@dataclass(frozen=True)
class Pipeline:
    """The flight-delay pipeline of a mesh. Results go to `folder`."""

    mesh: MeshClient
    console: Console
    stopwatch: Stopwatch
    folder: Path

    def run(self, envelope: Envelope, remarks: Mapping[str, str] | None = None) -> TaskView:
        """Send the envelope and show its progress, slices included, until it succeeds.

        Raises:
            CommandError: The task failed. If the mesh stored the failed envelope, the folder has a copy.
        """
        route = full_route((envelope.route.curr, *envelope.route.next))
        fan_in = route.index(names.FAN_IN)
        slices = SlicePoller(self.mesh, envelope.id, fan_in - 1, SLICES_PASS)
        task: TaskView | None = None
        answered: set[str] = set()
        with self.stopwatch.lap("pipeline"):
            self.mesh.send(envelope)
            self.console.print(f"  [green]✔[/] SendMessage  envelope {envelope.id}\n")
            with Display(self.console, Progress.of(route, SLICES_PASS, fan_in), remarks) as display:
                for task in watch(self.mesh, envelope.id, TIMEOUT_SECONDS):
                    if task is not None:
                        display.show(display.progress.after(task).after_slices(slices.poll(task)))
                        self._answer(task, display, answered)
            self.console.print()
            for line in display.progress.all_lines:
                if line.seconds is not None:
                    self.stopwatch.note(line.actor, line.seconds)
        assert task is not None
        if not task.has_succeeded:
            raise self._failure(task)
        return task

    def collect(self, task: TaskView) -> Outcome:
        """Fetch the result and the report of a task that succeeded.

        Raises:
            CommandError: The result or the report is missing in S3.
        """
        with self.stopwatch.lap("result and report"):
            stored = self.mesh.stored(task.id, task.result_uri)
            if stored is None:
                raise CommandError(
                    f"the task succeeded, but its object is missing: {task.result_uri or 'no address in the record'}"
                )
            payload: dict[str, Any] = msgspec.json.decode(stored.body)["payload"]
            uri = self.mesh.connection.data.uri + payload["report"]
            report = self.mesh.fetch(uri)
            if report is None:
                raise CommandError(f"the report that the result names is missing: {uri}")
            result = self._save(RESULT, stored.body)
            runs = read_job_runs(self.mesh, task.id)
            return Outcome(stored.uri, payload, result, self._save(REPORT, report), task.id, runs)

    def _answer(self, task: TaskView, display: Display, answered: set[str]) -> None:
        """Resume a paused task with the answers, once per pause."""
        if task.is_paused and task.pause is not None and task.pause.since not in answered:
            with display.suspended():
                self.mesh.resume(task.id, answers(task.pause, self.console))
            answered.add(task.pause.since)

    def _failure(self, task: TaskView) -> CommandError:
        error = f"{task.error.type}: {task.error.message}" if task.error else task.reason or "the record has no error"
        location = f" at {task.actor}" if task.actor else ""
        advice = f"See the logs in {self.folder / 'logs'}"
        stored = self.mesh.stored(task.id, task.result_uri)
        if stored is not None:
            advice += f", and the failed envelope with its traceback in {self._save(RESULT, stored.body)}"
        return CommandError(f"the pipeline {task.status}{location}: {error}", f"{advice}.")

    def _save(self, name: str, body: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(body)
        return path
