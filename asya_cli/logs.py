"""`asya logs`: what functions and job runs of the mesh have logged, about one envelope or of one actor."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from asya_cli import clock
from asya_cli.errors import INTERRUPTED, CommandError, ExitCode
from asya_cli.options import JsonLines, MeshOptions, selects_mesh
from asya_cli.output.results import write
from asya_cli.output.text import echo, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya.capabilities.operations.aws.logs import FunctionLogs, LogFile
    from asya.client.mesh_client import MeshClient
    from asya_cli.gateway_logs import GatewayLogs
    from asya_cli.job.mesh_runs import MeshRuns

_POLL_SECONDS = 2.0
_BEFORE_SECONDS = 60.0
"""Clocks differ, and a function logs before it reports."""
_OVERLAP_SECONDS = 30.0
"""How much of what was read is read again: lines of one moment come in any order."""
_LATE_SECONDS = 10.0
"""How long after the end of a task its last lines are waited for."""
_LATE_RUN_SECONDS = 30.0
"""The same of a task with job runs: EMR Serverless uploads the last lines after the end of a run."""
_HIDDEN = frozenset({
    "level", "location", "message", "timestamp", "service", "namespace", "actor", "xray_trace_id", "exception",
    "exception_name", "stack_trace", "traceback", "cold_start", "function_name", "function_memory_size", "function_arn",
    "function_request_id",
})  # fmt: skip
"""The fields of a line that are shown in another way, or not at all."""


@selects_mesh
def logs(
    subject: Annotated[
        str, typer.Argument(metavar="ID|ACTOR", help="An envelope's id, or an actor.", show_default=False)
    ],
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new lines; of an envelope, until its task ends.")
    ] = False,
    since: Annotated[
        str, typer.Option("--since", help="Of an actor: only lines since then, such as 30m or 2h.")
    ] = "1h",
    of_task: Annotated[bool, typer.Option("--task", help="An envelope's id, also if an actor has this name.")] = False,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """Print what functions and job runs have logged about an envelope, or what an actor has logged.

    The lines of functions come from CloudWatch Logs, of a local cloud too. What a handler prints is in the log of its actor,
    without the id of the envelope. All lines of the envelope's job runs follow, of the driver and of the executors; they tell no
    time. EMR Serverless uploads them a minute or more after they were written. A mesh of `asya dev` keeps its newest 20,000 lines.
    """
    from asya_cli.aws_errors import aws_errors
    from asya_cli.gateway_logs import logs_of
    from asya_cli.tasks.selection import moment

    mesh = selected.client()
    start = moment(since, clock.now()).timestamp()
    try:
        with aws_errors("cannot read the logs", _PERMISSIONS):
            reader = LogReader(logs_of(mesh), as_json=as_json)
            if not of_task and reader.functions.has_logs(subject):
                _follow_actor(reader, subject, start, follow=follow)
            else:
                _follow_task(reader, mesh, subject, selected.as_typed(), follow=follow)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _follow_actor(reader: LogReader, actor: str, start: float, *, follow: bool) -> None:
    while True:
        count = reader.print_new({actor: start})
        if not follow:
            if not count:
                echo(f"{actor} has logged nothing since then", err=True)
            return
        clock.sleep(_POLL_SECONDS)


def _follow_task(reader: LogReader, mesh: MeshClient, envelope_id: str, options: str, *, follow: bool) -> None:
    from asya.capabilities.operations.log_lines import AFTER_THE_HOPS
    from asya.protocol.times import parse_time
    from asya_cli.job.mesh_runs import MeshRuns
    from asya_cli.tasks.records import awaited_task

    task = awaited_task(mesh, envelope_id)
    if task is None:
        raise CommandError(
            f"there is no task and no actor {envelope_id!r}",
            "Give the id of an envelope, or the name of an actor.",
            ExitCode.NOT_FOUND,
        )
    start = parse_time(task.created_at).timestamp() - _BEFORE_SECONDS
    runs = RunLines(MeshRuns(mesh.connection, options), options, as_json=reader.as_json)
    ended_at: float | None = None
    count = 0
    while True:
        hops = mesh.timeline(envelope_id)
        # A hop that fails at once may have reported its end alone.
        ended = (task.actor,) if task is not None and task.actor else ()
        actors = dict.fromkeys((*(hop.actor for hop in hops), *ended, *AFTER_THE_HOPS), start)
        count += reader.print_new(actors, envelope_id)
        for run in dict.fromkeys(hop.run.run_id for hop in hops if hop.run is not None):
            count += runs.print_new(run)
        if ended_at is not None and clock.monotonic() > ended_at + (_LATE_RUN_SECONDS if runs.names else _LATE_SECONDS):
            return
        task = mesh.task(envelope_id)
        if ended_at is None and (task is None or task.is_terminal):
            ended_at = clock.monotonic()
        if not follow:
            if not count:
                echo("no function has logged about it", err=True)
            return
        clock.sleep(_POLL_SECONDS)


_PERMISSIONS = (
    "The command needs logs:FilterLogEvents, and of a task with job runs the permissions that docs/how-to/operate.md lists "
    "under “Job runs”."
)


class PrintedLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line as `--json` prints it.

    Attributes:
        at: When a function wrote it; the files of a job run tell no time.
        line: What was written: the JSON of the mesh, or the text of anything else.
        run_id, worker, stream: Of a line of a job run; the worker is `driver` or the number of an executor.
    """

    at: datetime | None = None
    actor: str
    line: msgspec.Raw | str
    run_id: str | None = None
    worker: str | None = None
    stream: str | None = None


@dataclass
class LogReader:
    """Reads the logs of the functions of a mesh, and prints each line once."""

    functions: FunctionLogs | GatewayLogs
    as_json: bool = False
    _printed: set[tuple[str, str]] = field(default_factory=set)
    _newest: dict[str, float] = field(default_factory=dict)

    def print_new(self, actors: Mapping[str, float], envelope_id: str = "") -> int:
        """Print the lines that were not printed yet, by time; returns how many a person sees.

        Args:
            actors: From when on, in epoch seconds, by actor. An actor without logs has no lines.
            envelope_id: Only lines about this envelope; empty for all lines.
        """
        from asya.capabilities.operations.log_lines import mentions, search_pattern
        from asya.protocol.times import parse_time

        pattern = search_pattern(envelope_id) if envelope_id else ""
        lines = [
            line
            for actor, start in actors.items()
            for line in self.functions.lines(
                actor, max(start, self._newest.get(actor, 0.0) - _OVERLAP_SECONDS), pattern
            )
            if (line.actor, line.id) not in self._printed and (not envelope_id or mentions(line.line, envelope_id))
        ]
        count = 0
        for line in sorted(lines, key=lambda line: line.at or ""):
            self._printed.add((line.actor, line.id))
            at = parse_time(line.at or "")
            self._newest[line.actor] = max(self._newest.get(line.actor, 0.0), at.timestamp())
            if (text := described(line.line)) is not None:
                printed = PrintedLine(at=at, actor=line.actor, line=raw_line(line.line))
                moment = f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
                write(printed, f"{moment} {one_line(line.actor)}  {text}", as_json=self.as_json)
                count += 1
        return count


@dataclass
class RunLines:
    """Reads what the drivers and executors of job runs have written, and prints each line once.

    Attributes:
        options: The options that select the mesh, for commands to type.
        names: The runs that were named.
    """

    mesh: MeshRuns
    options: str
    as_json: bool = False
    names: set[str] = field(default_factory=set)
    _printed: dict[str, tuple[str, int]] = field(default_factory=dict)

    def print_new(self, run_id: str) -> int:
        """Print the lines of a run that were not printed yet, the driver's first; returns their number.

        Raises:
            botocore.exceptions.ClientError: AWS denies access.
        """
        is_first = run_id not in self.names
        self.names.add(run_id)
        try:
            record = self.mesh.read(run_id)
        except CommandError as error:  # its record has expired
            if is_first:
                echo(error.problem, err=True)
            return 0
        if is_first:
            echo(f"job run {run_id}: `asya job show {run_id}{self.options}`", err=True)
        return sum(self._print_file(run_id, record.actor, file) for file in self.mesh.logs.files(record))

    def _print_file(self, run_id: str, actor: str, file: LogFile) -> int:
        version, length = self._printed.get(file.key, ("", 0))
        if version == file.version:
            return 0
        text = self.mesh.logs.text(file)
        # Each upload replaces the whole file. A shorter one is another file, such as after a rotation.
        lines = text[length if len(text) >= length else 0 :].splitlines()
        self._printed[file.key] = (file.version, len(text))
        worker = file.worker if file.worker == "driver" else f"executor {file.worker}"
        for line in lines:
            printed = PrintedLine(actor=actor, line=line, run_id=run_id, worker=file.worker, stream=file.stream)
            write(printed, f"{run_id} {one_line(worker)} {file.stream}  {line}", as_json=self.as_json)
        return len(lines)


def raw_line(message: str) -> msgspec.Raw | str:
    """Return a line unchanged: as JSON if it is a JSON object."""
    try:
        msgspec.json.decode(message, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        return message.rstrip("\n")
    return msgspec.Raw(message.strip().encode())


def described(message: str) -> str | None:
    """Return a line as a person reads it; None for metrics and for Lambda's own lines about a call that succeeds.

    A line of the mesh is JSON: its level, message, fields and traceback are shown. Any other line is shown as it is.
    """
    message = message.rstrip("\n")
    if message.startswith(("START RequestId", "END RequestId", "REPORT RequestId", "INIT_START")):
        return None
    try:
        entry = msgspec.json.decode(message)
    except msgspec.MsgspecError:
        return message
    if not isinstance(entry, dict):
        return message
    if "message" not in entry:
        return None if "_aws" in entry or _is_of_success(entry) else message
    fields = (f"{name}={_value(value)}" for name, value in entry.items() if name not in _HIDDEN and value is not None)
    trace = entry.get("exception") or entry.get("traceback") or ""
    return " ".join([f"{entry.get('level') or ''!s:<7} {entry['message']}", *fields]) + (f"\n{trace}" if trace else "")


def _is_of_success(entry: dict[str, Any]) -> bool:
    """Whether a line is Lambda's own in its JSON format, and of no failure."""
    record = entry.get("record")
    is_own = str(entry.get("type", "")).startswith("platform.") and isinstance(record, dict)
    return is_own and isinstance(record, dict) and record.get("status", "success") == "success"


def _value(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
