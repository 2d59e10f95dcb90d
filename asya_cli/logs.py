"""`asya logs`: the lines that functions of the mesh have logged, about one envelope or of one actor."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from asya_cli.errors import INTERRUPTED, CommandError, ExitCode
from asya_cli.options import DEFAULT_STATE, JsonLines, Namespace, Profile, Region, State, as_typed, client
from asya_cli.output.text import echo, one_line, write_json_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_logs.type_defs import FilteredLogEventTypeDef

    from asya.client.mesh_client import MeshClient

_POLL_SECONDS = 2.0
_BEFORE_SECONDS = 60.0
"""Clocks differ, and a function logs before it reports."""
_OVERLAP_SECONDS = 30.0
"""How much of what was read is read again: lines of one moment come in any order."""
_GROUP_NAME = re.compile(r"[.\-_/#A-Za-z0-9]+")
"""What CloudWatch takes as the name of a log group; ids of envelopes may have any characters."""
_LATE_SECONDS = 10.0
"""How long after the end of a task its last lines are waited for."""
_HIDDEN = frozenset({
    "level", "location", "message", "timestamp", "service", "namespace", "actor", "xray_trace_id", "exception",
    "exception_name", "stack_trace", "traceback", "cold_start", "function_name", "function_memory_size", "function_arn",
    "function_request_id",
})  # fmt: skip
"""The fields of a line that are shown in another way, or not at all."""


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
    as_json: JsonLines = False,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """Print what functions have logged about an envelope, or what an actor has logged.

    The lines come from CloudWatch Logs, of a local cloud too. What a handler prints is in the log of its actor, without the id of
    the envelope. The logs of a job run are those of `asya job logs RUN`; the command names the runs of an envelope. A mesh of
    `asya dev` has no logs but those at its terminal.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from asya_cli.tasks.selection import moment

    mesh = client(state, namespace, region, profile)
    reader = LogReader(mesh.connection.logs(), mesh.connection.namespace, as_json=as_json)
    start = moment(since, datetime.now(UTC)).timestamp()
    try:
        if reader.has_logs(subject):
            _follow_actor(reader, subject, start, follow=follow)
        else:
            _follow_task(reader, mesh, subject, as_typed(state, namespace, region, profile), follow=follow)
    except (ClientError, BotoCoreError) as error:
        raise CommandError(f"cannot read the logs: {error}", "The command needs logs:FilterLogEvents.") from error
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _follow_actor(reader: LogReader, actor: str, start: float, *, follow: bool) -> None:
    while True:
        count = reader.print_new({actor: start})
        if not follow:
            if not count:
                echo(f"{actor} has logged nothing since then", err=True)
            return
        time.sleep(_POLL_SECONDS)


def _follow_task(reader: LogReader, mesh: MeshClient, envelope_id: str, options: str, *, follow: bool) -> None:
    from asya.client.ends import TERMINAL
    from asya.protocol.times import parse_time
    from asya_cli.tasks.records import awaited_task

    task = awaited_task(mesh, envelope_id)
    if task is None:
        raise CommandError(
            f"there is no task and no actor {envelope_id!r}",
            "Give the id of an envelope, or the name of an actor. A mesh of `asya dev` logs to its terminal.",
            ExitCode.NOT_FOUND,
        )
    start = parse_time(task.created_at).timestamp() - _BEFORE_SECONDS
    runs: list[str] = []
    ended_at: float | None = None
    count = 0
    while True:
        hops = mesh.timeline(envelope_id)
        actors = dict.fromkeys((*(hop.actor for hop in hops), *_ENDING), start)
        count += reader.print_new(actors, f'"{envelope_id.replace(chr(34), "")}"')
        for run in (hop.run.run_id for hop in hops if hop.run is not None):
            if run not in runs:
                runs.append(run)
                echo(f"job run: `asya job logs {run}{options}`", err=True)
        if ended_at is not None and time.monotonic() > ended_at + _LATE_SECONDS:
            return
        task = mesh.task(envelope_id)
        if ended_at is None and (task is None or task.status in TERMINAL):
            ended_at = time.monotonic()
        if not follow:
            if not count:
                echo("no function has logged about it; a mesh of `asya dev` logs to its terminal", err=True)
            return
        time.sleep(_POLL_SECONDS)


_ENDING = ("x-sink", "x-sump")


@dataclass(frozen=True)
class LogLine:
    """A line as `--json` prints it.

    Attributes:
        at: When it was written.
        line: What was written: the JSON of the mesh, or the text of anything else.
    """

    at: datetime
    actor: str
    line: msgspec.Raw | str


@dataclass
class LogReader:
    """Reads the log groups of the functions of a mesh, and prints each line once."""

    client: CloudWatchLogsClient
    namespace: str
    as_json: bool = False
    _printed: set[object] = field(default_factory=set)
    _newest: dict[str, float] = field(default_factory=dict)

    def has_logs(self, actor: str) -> bool:
        """Return whether there is a function with logs for an actor."""
        if not _GROUP_NAME.fullmatch(actor):
            return False
        try:
            self.client.filter_log_events(logGroupName=self._group(actor), limit=1)
        except self.client.exceptions.ResourceNotFoundException:
            return False
        return True

    def print_new(self, actors: Mapping[str, float], pattern: str = "") -> int:
        """Print the lines that were not printed yet, by time; returns their number.

        Args:
            actors: From when on, in epoch seconds, by actor. An actor without logs has no lines.
            pattern: Only lines that match this pattern of CloudWatch Logs.
        """
        lines = {
            event.get("eventId") or (event["timestamp"], actor, event["logStreamName"], event["message"]): (
                event["timestamp"],
                actor,
                event["message"],
            )
            for actor, start in actors.items()
            for event in self._events(actor, max(start, self._newest.get(actor, 0.0) - _OVERLAP_SECONDS), pattern)
        }
        new = sorted((line for key, line in lines.items() if key not in self._printed), key=lambda line: line[0])
        self._printed.update(lines)
        for moment, actor, message in new:
            self._newest[actor] = max(self._newest.get(actor, 0.0), moment / 1000)
            if (text := described(message)) is not None:
                at = datetime.fromtimestamp(moment / 1000, UTC)
                if self.as_json:
                    write_json_line(LogLine(at, actor, raw_line(message)))
                    continue
                echo(f"{at:%Y-%m-%dT%H:%M:%S}.{moment % 1000:03d}Z {one_line(actor)}  {text}")
        return len(new)

    def _events(self, actor: str, start: float, pattern: str) -> Iterator[FilteredLogEventTypeDef]:
        pages = self.client.get_paginator("filter_log_events").paginate(
            logGroupName=self._group(actor), startTime=int(start * 1000), filterPattern=pattern
        )
        try:
            for page in pages:
                yield from page["events"]
        except self.client.exceptions.ResourceNotFoundException:
            return  # an actor that is gone

    def _group(self, actor: str) -> str:
        from asya.protocol import names

        return f"/aws/lambda/{names.function_name(self.namespace, actor)}"


def raw_line(message: str) -> msgspec.Raw | str:
    """Return a line unchanged: as JSON if it is a JSON object."""
    try:
        msgspec.json.decode(message, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        return message.rstrip("\n")
    return msgspec.Raw(message.strip().encode())


def described(message: str) -> str | None:
    """Return a line as a person reads it; None for metrics and for Lambda's own lines about a call.

    A line of the mesh is JSON: its level, message, fields and traceback are shown. Any other line is shown as it is.
    """
    message = message.rstrip("\n")
    if message.startswith(("START RequestId", "END RequestId", "REPORT RequestId", "INIT_START")):
        return None
    try:
        entry = msgspec.json.decode(message)
    except msgspec.MsgspecError:
        return message
    if not isinstance(entry, dict) or "message" not in entry:
        return None if isinstance(entry, dict) and "_aws" in entry else message
    fields = (f"{name}={_value(value)}" for name, value in entry.items() if name not in _HIDDEN and value is not None)
    trace = entry.get("exception") or entry.get("traceback") or ""
    return " ".join([f"{entry.get('level') or ''!s:<7} {entry['message']}", *fields]) + (f"\n{trace}" if trace else "")


def _value(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
