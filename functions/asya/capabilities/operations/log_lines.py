"""The lines that functions and job runs have logged: which belong to a task, and how a page of them is bounded."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

import msgspec

from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.protocol.times import parse_time

DEFAULT_LIMIT = 100
LARGEST_LIMIT = 500
LINE_LIMIT = 32 * 1024
"""Bytes of a line in an answer; the rest is cut."""
PAGE_LIMIT = 3 * 1024 * 1024
"""Bytes of the lines of an answer in the form that Lambda returns, which has 6 MB at most."""
SHORT_LINE = 1024
"""Bytes of the lines of an answer beyond `PAGE_LIMIT`."""
AFTER_THE_HOPS = (names.SINK, names.SUMP, names.DLQ)
"""The functions that log about a task after its hops."""

RunSource = Literal["driver", "executor"]
RUN_SOURCES: tuple[str, ...] = get_args(RunSource)
_SEARCHABLE = re.compile(r"[ !#-\[\]-~]+")
"""The characters that a log line and a filter of CloudWatch Logs write alike: ASCII without quotes and backslashes."""
_WITHIN_A_NAME = r"[\w-]"


class LogLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line.

    Attributes:
        id: names the line; the same line has it in each answer.
        at: when a function wrote it (RFC 3339); the files of a job run tell no time.
        actor: whose function or whose job run.
        line: the text: JSON if the mesh itself wrote it.
        run_id: the job run.
        worker: `driver`, or the number of an executor.
        stream: `stdout` or `stderr`.
        truncated: whether the line is cut.
    """

    id: str
    at: str | None = None
    actor: str
    line: str
    run_id: str | None = None
    worker: str | None = None
    stream: str | None = None
    truncated: bool = False


class LogPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of lines; `next_cursor` is set if there may be more."""

    items: list[LogLine]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class LogQuery:
    """The parameters of a call for lines.

    Attributes:
        since: the earliest time of a line of a function; None for the default of the call.
        source: the workers of a job run; None for all.
    """

    limit: int = DEFAULT_LIMIT
    since: datetime | None = None
    source: RunSource | None = None
    cursor: str | None = None

    def scope(self, subject: str) -> str:
        """The query that a cursor is valid for."""
        return f"{subject} {self.since} {self.source}"


def read_log_query(parameters: Mapping[str, str]) -> LogQuery:
    """Read `limit`, `since`, `source` and `cursor`.

    Raises:
        ApiError: 400 with the name of the parameter.
    """
    source = parameters.get("source")
    if source is not None and source not in RUN_SOURCES:
        raise ApiError(400, "invalid_field", f"source must be {' or '.join(RUN_SOURCES)}", "source")
    return LogQuery(
        limit=_limit(parameters.get("limit")),
        since=_time(parameters.get("since")),
        source="driver" if source == "driver" else "executor" if source else None,
        cursor=parameters.get("cursor"),
    )


def _limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= LARGEST_LIMIT):
        raise ApiError(400, "invalid_field", f"limit must be a number from 1 to {LARGEST_LIMIT}", "limit")
    return int(text)


def _time(text: str | None) -> datetime | None:
    try:
        return None if text is None else parse_time(text)
    except ValueError:
        problem = "since must be a time such as 2025-11-18T14:30:45Z"
        raise ApiError(400, "invalid_field", problem, "since") from None


def search_pattern(envelope_id: str) -> str:
    """Return a filter of CloudWatch Logs that every line about an envelope passes; empty if no part of the id can be searched.

    The filter finds parts of words, so it finds `order-71` for `order-7` too: `mentions` decides.
    """
    parts: list[str] = _SEARCHABLE.findall(envelope_id)
    longest = max(parts, key=len, default="")
    return f'"{longest}"' if longest.strip() else ""


def mentions(message: str, envelope_id: str) -> bool:
    """Whether a line is about an envelope: it has the id as a whole name, in its text or in a field of its JSON."""
    name = re.compile(rf"(?<!{_WITHIN_A_NAME}){re.escape(envelope_id)}(?!{_WITHIN_A_NAME}|\.\w)")
    if name.search(message):
        return True
    try:
        entry = msgspec.json.decode(message)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return False
    return any(name.search(text) for text in _texts(entry))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def bounded(lines: Iterable[LogLine]) -> list[LogLine]:
    """Cut lines so that all of them fit into one answer, whatever they contain."""
    page: list[LogLine] = []
    total = 0
    for line in lines:
        cut = _cut(line, LINE_LIMIT if total < PAGE_LIMIT else SHORT_LINE)
        # Lambda escapes the answer, whose lines are escaped, once more.
        total += len(msgspec.json.encode(msgspec.json.encode(cut.line).decode()))
        page.append(cut)
    return page


def _cut(line: LogLine, limit: int) -> LogLine:
    encoded = line.line.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return line
    return msgspec.structs.replace(line, line=encoded[:limit].decode("utf-8", "ignore"), truncated=True)
