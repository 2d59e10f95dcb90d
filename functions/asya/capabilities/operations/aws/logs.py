"""Reads pages of log lines: of functions from CloudWatch Logs, of job runs from the mesh's bucket."""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from asya.capabilities.operations.log_lines import LogLine, RunSource, mentions, search_pattern
from asya.heavy.aws.run_records import RunRecord, job_run_number
from asya.protocol import names
from asya.protocol.job_runs import logs_prefix
from asya.protocol.times import format_time, from_epoch_seconds

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client

_GROUP_NAME = re.compile(r"[.\-_/#A-Za-z0-9]+")
"""What CloudWatch takes as the name of a log group; ids of envelopes may have any characters."""
_MOST_EVENTS = 10_000
_OLDEST_ENVIRONMENT = timedelta(1)
"""A stream has the day on which its environment began. Lambda ends an environment after some hours."""
_MOST_DAYS = timedelta(7)
"""Of more days all streams are read at once. Day by day CloudWatch Logs finds those of one function."""


@dataclass(frozen=True, slots=True)
class LoggedPage:
    """Lines of a function by time, and the token of the next page; None at the end."""

    lines: list[LogLine]
    token: str | None = None


class LoggedLines(Protocol):
    """The lines that the functions of a mesh have logged."""

    def page(
        self, actor: str, start: float, pattern: str = "", token: str = "", limit: int = _MOST_EVENTS
    ) -> LoggedPage:
        """Read lines of an actor's function.

        Args:
            actor: an actor or a system function; one without logs has no lines.
            start: the earliest time in epoch seconds.
            pattern: a filter of CloudWatch Logs; empty for all lines.
            token: of the page before; empty for the first page.
            limit: the maximum of lines.
        """


class FunctionLogs:
    """The log groups of one mesh: one for each function with user code, and one for the crew.

    Raises:
        ClientError, BotoCoreError: from every method, if CloudWatch Logs fails or denies access.
    """

    def __init__(self, client: "CloudWatchLogsClient", namespace: str, now: Callable[[], datetime]) -> None:
        self._client = client
        self._namespace = namespace
        self._now = now

    def has_logs(self, actor: str) -> bool:
        """Whether there is a function with logs for an actor."""
        if not _GROUP_NAME.fullmatch(actor):
            return False
        try:
            self._client.filter_log_events(logGroupName=self._group(actor), limit=1)
        except self._client.exceptions.ResourceNotFoundException:
            return False
        return True

    def page(
        self, actor: str, start: float, pattern: str = "", token: str = "", limit: int = _MOST_EVENTS
    ) -> LoggedPage:
        """See `LoggedLines`."""
        runner = names.runner_of(actor)
        query: Any = {
            "startTime": max(0, int(start * 1000)),
            "filterPattern": pattern,
            "limit": min(limit, _MOST_EVENTS),
        }
        if runner not in names.CREW:
            return self._search(actor, query, token)
        last = self._now().date()
        first = min(from_epoch_seconds(start).date() - _OLDEST_ENVIRONMENT, last)
        # Tokens of CloudWatch Logs have no spaces. Those of days have one, also after the midnight that made it a day too many.
        if " " not in token and (token or pattern or last - first > _MOST_DAYS):
            return self._search(actor, query, token)
        number, _, token = token.partition(" ")
        passed = int(number) if number.isdecimal() and len(number) < 3 else 0
        day = min(first + timedelta(passed), last)
        part = names.log_stream_part(self._namespace, runner)
        page = self._search(actor, query | {"logStreamNamePrefix": f"{day:%Y/%m/%d}{part}"}, token)
        if page.token is not None:
            return LoggedPage(page.lines, f"{passed} {page.token}")
        return LoggedPage(page.lines, f"{passed + 1} " if day < last else None)

    def lines(self, actor: str, start: float, pattern: str = "") -> Iterator[LogLine]:
        """Read all lines of an actor's function, as `page` does."""
        page = self.page(actor, start, pattern)
        yield from page.lines
        while page.token is not None:
            page = self.page(actor, start, pattern, page.token)
            yield from page.lines

    def _search(self, actor: str, query: dict[str, Any], token: str) -> LoggedPage:
        """Read a page of a log group, and keep the lines of the function."""
        more: Any = {"nextToken": token} if token else {}
        try:
            answer = self._client.filter_log_events(logGroupName=self._group(actor), **query, **more)
        except self._client.exceptions.ResourceNotFoundException:
            return LoggedPage([])  # an actor that is gone, or a day without streams
        runner = names.runner_of(actor)
        part = names.log_stream_part(self._namespace, runner)
        found = answer.get("events", [])
        own = [event for event in found if runner not in names.CREW or part in event["logStreamName"]]
        # The steps of the clock share its streams, and so do the end actors those of x-sink.
        if actor != runner:
            own = [event for event in own if _actor_of(event["message"]) == actor]
        elif actor in names.END_ACTORS:
            own = [event for event in own if _actor_of(event["message"]) not in names.END_ACTORS - {actor}]
        lines = [_line(actor, event) for event in own]
        return LoggedPage(sorted(lines, key=lambda line: line.at or ""), answer.get("nextToken") or None)

    def _group(self, actor: str) -> str:
        return names.log_group(self._namespace, actor)


class _OfActor(msgspec.Struct):
    actor: str = ""


def _actor_of(message: str) -> str:
    """Return the actor that a line of the mesh names; empty for any other line."""
    try:
        return msgspec.json.decode(message, type=_OfActor).actor
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return ""


def _line(actor: str, event: Any) -> LogLine:
    at = event["timestamp"]
    return LogLine(
        id=event["eventId"],
        at=format_time(datetime.fromtimestamp(at / 1000, UTC)),
        actor=actor,
        line=event["message"].rstrip("\n"),
    )


DRIVER = "driver"
_FILE = re.compile(
    r"/jobs/(?P<job>[^/]+)/(?P<role>SPARK_DRIVER|SPARK_EXECUTOR/(?P<executor>[^/]+))/(?P<stream>std(?:out|err))[^/]*\.gz$"
)
_CHUNK = 64 * 1024
_GZIP = b"\x1f\x8b"
_LONGEST_LINE = 1024 * 1024


class Readable(Protocol):
    """The body of an object."""

    def read(self, amt: int) -> bytes:
        """Read up to so many bytes; none at the end."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of one worker's output.

    Attributes:
        version: differs after each upload, which replaces the file.
        worker: `driver`, or the number of an executor.
        stream: `stdout` or `stderr`.
    """

    key: str
    version: str
    worker: str
    stream: str

    @property
    def order(self) -> tuple[bool, int, str, str, str]:
        """The place of the file: the driver first, then the executors by number."""
        number = int(self.worker) if self.worker.isdecimal() else 0
        return (self.worker != DRIVER, number, self.worker, self.stream, self.key)


@dataclass(frozen=True, slots=True)
class FileLines:
    """Lines of a file, each with the byte at which it begins, and the byte after the last; None at the end of the file."""

    lines: list[tuple[int, str]]
    next: int | None


class RunLogs:
    """The logs of job runs.

    Raises:
        ClientError, BotoCoreError: from every method, if S3 fails or denies access.
    """

    def __init__(self, s3: "S3Client", bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def files(self, record: RunRecord, source: RunSource | None = None) -> list[LogFile]:
        """List the files of a run: the driver's, then those of the executors.

        Args:
            source: only files of the driver, or of the executors.
        """
        prefix = logs_prefix(record.actor, job_run_number(record))
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        files = []
        for entry in (entry for page in pages for entry in page.get("Contents", [])):
            found = _FILE.search(entry["Key"])
            if found is not None and (source is None or (source == DRIVER) == (found["executor"] is None)):
                files.append(LogFile(entry["Key"], entry["ETag"], found["executor"] or DRIVER, found["stream"]))
        return sorted(files, key=lambda file: file.order)

    def text(self, file: LogFile) -> str:
        """Read a whole file, as far as it is complete."""
        return b"".join(unpacked(self._body(file))).decode(errors="replace")

    def lines(self, file: LogFile, start: int, *, limit: int, size: int) -> FileLines:
        """Read lines of a file.

        Args:
            start: the byte of the unpacked file to begin at.
            limit: the maximum of lines.
            size: bytes after which no further line is read.
        """
        return read_lines(unpacked(self._body(file)), start, limit=limit, size=size)

    def _body(self, file: LogFile) -> Readable:
        return self._s3.get_object(Bucket=self._bucket, Key=file.key)["Body"]


def read_lines(chunks: Iterator[bytes], start: int, *, limit: int, size: int) -> FileLines:
    """Read lines from a byte on; see `RunLogs.lines`."""
    lines: list[tuple[int, str]] = []
    position, rest = 0, b""
    for chunk in chunks:
        position += len(chunk)
        if position <= start:
            continue
        rest += chunk[start - position :] if position - len(chunk) < start else chunk
        begin = position - len(rest)
        while rest:
            end = rest.find(b"\n") + 1
            if not end and len(rest) < _LONGEST_LINE:
                break
            end = min(end or _LONGEST_LINE, _LONGEST_LINE)
            lines.append((begin, rest[:end].rstrip(b"\r\n").decode(errors="replace")))
            begin, rest = begin + end, rest[end:]
            if len(lines) == limit or begin - start >= size:
                return FileLines(lines, begin)
    if rest:
        lines.append((position - len(rest), rest.decode(errors="replace")))
    return FileLines(lines, None)


def unpacked(body: Readable) -> Iterator[bytes]:
    """Yield the content of a gzip file, as far as it is complete; that of any other file as it is."""
    chunk = body.read(_CHUNK)
    if not chunk.startswith(_GZIP):
        while chunk:
            yield chunk
            chunk = body.read(_CHUNK)
        return
    unpacker = zlib.decompressobj(wbits=31)
    while chunk:
        try:
            # Bounded, because a small file may hold much text.
            content = unpacker.decompress(chunk, _LONGEST_LINE)
        except zlib.error:
            return  # damaged
        if content:
            yield content
        chunk = unpacker.unconsumed_tail
        if unpacker.eof:  # a file may have several members
            chunk, unpacker = unpacker.unused_data, zlib.decompressobj(wbits=31)
        chunk = chunk or body.read(_CHUNK)


_SECONDS = 12.0
"""After so many seconds no further source is read: an answer has 29."""
_FILE_BYTES = 512 * 1024
"""Bytes of a file that one page has at most."""


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of one source, and the place in it after them; None at its end."""

    lines: list[LogLine]
    next: str | None


class Source(Protocol):
    """A source of lines.

    Attributes:
        key: its place among the sources of a page.
    """

    @property
    def key(self) -> str:
        """The place of the source among those of a query."""

    def read(self, start: str, limit: int) -> Part:
        """Read up to `limit` lines from a place on; empty for the beginning."""


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """The log group of a function.

    Attributes:
        since: epoch seconds.
        envelope_id: only lines about this envelope; None for all lines.
    """

    logs: LoggedLines
    actor: str
    since: float
    envelope_id: str | None = None

    @property
    def key(self) -> str:
        """See `Source`."""
        return f"0 {self.actor}"

    def read(self, start: str, limit: int) -> Part:
        """See `Source`."""
        envelope_id = self.envelope_id
        pattern = "" if envelope_id is None else search_pattern(envelope_id)
        page = self.logs.page(self.actor, self.since, pattern, start, limit)
        lines = [line for line in page.lines if envelope_id is None or mentions(line.line, envelope_id)]
        return Part(lines, page.token)


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file of a job run."""

    logs: RunLogs
    actor: str
    run_id: str
    file: LogFile

    @property
    def key(self) -> str:
        """See `Source`."""
        is_executor, number, *rest = self.file.order
        return f"1 {self.run_id} {is_executor:d} {number:09d} {' '.join(map(str, rest))}"

    def read(self, start: str, limit: int) -> Part:
        """See `Source`."""
        found = self.logs.lines(self.file, int(start) if start.isdecimal() else 0, limit=limit, size=_FILE_BYTES)
        lines = [
            LogLine(
                id=f"{self.file.key} {begin}",
                actor=self.actor,
                line=text,
                run_id=self.run_id,
                worker=self.file.worker,
                stream=self.file.stream,
            )
            for begin, text in found.lines
        ]
        return Part(lines, None if found.next is None else str(found.next))


def read_page(
    sources: Iterable[Source], after: Sequence[str], limit: int, monotonic: Callable[[], float]
) -> tuple[list[LogLine], tuple[str, str] | None]:
    """Read a page, source after source, and the position to continue at; None at the end.

    Lines of functions are in the order of their times within a page.

    Args:
        sources: the sources of the query.
        after: the position that the page before has given; empty for the first page.
        limit: the maximum of lines.
        monotonic: seconds of a clock that never goes back.
    """
    ends = monotonic() + _SECONDS
    first, place = (after[0], after[1]) if after else ("", "")
    lines: list[LogLine] = []
    for source in sorted(sources, key=lambda each: each.key):
        if source.key < first:
            continue
        start = place if source.key == first else ""
        while True:
            if len(lines) >= limit or monotonic() > ends:
                return _by_time(lines), (source.key, start)
            part = source.read(start, limit - len(lines))
            lines += part.lines
            if part.next is None:
                break
            start = part.next
    return _by_time(lines), None


def _by_time(lines: list[LogLine]) -> list[LogLine]:
    """Sort the lines of functions; those of job runs follow in the order of their files."""
    return sorted(lines, key=lambda line: line.at or "~")
