"""Reads pages of lines from several sources: log groups of functions, then files of job runs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from asya.capabilities.operations.aws.function_logs import LoggedLines
from asya.capabilities.operations.aws.run_logs import LogFile, RunLogs
from asya.capabilities.operations.log_lines import LogLine, mentions, search_pattern

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
