"""One envelope through the pipeline: sent, watched, and what came out of it collected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from asya.protocol import names
from asya_cli.demo.approval import answers, passed
from asya_cli.errors import CommandError
from asya_cli.progress.actors import Progress
from asya_cli.progress.display import Display
from asya_cli.progress.slices import SliceWatch
from asya_cli.progress.watch import watch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import Console

    from asya.protocol.envelope import Envelope
    from asya.tasks.view import TaskView
    from asya_cli.demo.stopwatch import Stopwatch
    from asya_cli.mesh_client import MeshClient

SLICES_PASS = ("delay-statistics",)
"""The actors between the fan-out and the fan-in; the route of the envelope itself does not name them."""

RESULT = "result.json"
REPORT = "report.html"
SECONDS = 15 * 60.0
"""How long the pipeline may take before the demo gives up."""


@dataclass(frozen=True)
class Outcome:
    """What came out.

    Attributes:
        uri: The object that x-sink wrote.
        result, report: The object, byte for byte, and the report, on this machine.
    """

    uri: str
    payload: dict[str, Any]
    result: Path
    report: Path


@dataclass(frozen=True)
class Pipeline:
    """The flight-delay pipeline of a mesh; what comes out of it lands in `folder`."""

    mesh: MeshClient
    console: Console
    stopwatch: Stopwatch
    folder: Path

    def run(self, envelope: Envelope, remarks: Mapping[str, str] | None = None) -> TaskView:
        """Send the envelope and show its progress, its slices' too, until it has succeeded.

        Raises:
            CommandError: It failed, saying how; the failed envelope is in the folder if the mesh stored it.
        """
        route = passed((envelope.route.curr, *envelope.route.next))
        fan_in = route.index(names.FAN_IN)
        slices = SliceWatch(self.mesh, envelope.id, fan_in - 1, SLICES_PASS)
        task: TaskView | None = None
        answered: set[str] = set()
        with self.stopwatch.lap("pipeline"):
            self.mesh.send(envelope)
            self.console.print(f"  [green]✔[/] SendMessage  envelope {envelope.id}\n")
            with Display(self.console, Progress.of(route, SLICES_PASS, fan_in), remarks) as display:
                for task in watch(self.mesh, envelope.id, SECONDS):
                    if task is not None:
                        display.show(display.progress.after(task).after_slices(slices.look(task)))
                        self._answer(task, display, answered)
            self.console.print()
            for line in display.progress.shown:
                if line.seconds is not None:
                    self.stopwatch.note(line.actor, line.seconds)
        assert task is not None
        if task.status != "succeeded":
            raise self._failure(task)
        return task

    def collect(self, task: TaskView) -> Outcome:
        """Fetch the result and the report of a task that succeeded.

        Raises:
            CommandError: One of them is not where it should be.
        """
        with self.stopwatch.lap("result and report"):
            stored = self.mesh.stored(task.id, task.result_uri)
            if stored is None:
                raise CommandError(f"the task succeeded, but there is no object {task.result_uri or 'of it'}")
            payload: dict[str, Any] = msgspec.json.decode(stored.body)["payload"]
            uri = self.mesh.connection.data.uri + payload["report"]
            report = self.mesh.fetch(uri)
            if report is None:
                raise CommandError(f"the result names a report that does not exist: {uri}")
            result = self._keep(RESULT, stored.body)
            return Outcome(stored.uri, payload, result, self._keep(REPORT, report))

    def _answer(self, task: TaskView, display: Display, answered: set[str]) -> None:
        """If the task waits for a person, have it go on; once for each pause."""
        if task.status == "paused" and task.pause is not None and task.pause.since not in answered:
            with display.aside():
                self.mesh.resume(task.id, answers(task.pause, self.console))
            answered.add(task.pause.since)

    def _failure(self, task: TaskView) -> CommandError:
        what = f"{task.error.type}: {task.error.message}" if task.error else task.reason or "no error is recorded"
        where = f" at {task.actor}" if task.actor else ""
        advice = f"Logs are in {self.folder / 'logs'}"
        stored = self.mesh.stored(task.id, task.result_uri)
        if stored is not None:
            advice += f", the failed envelope with its traceback in {self._keep(RESULT, stored.body)}"
        return CommandError(f"the pipeline {task.status}{where}: {what}", f"{advice}.")

    def _keep(self, name: str, body: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(body)
        return path
