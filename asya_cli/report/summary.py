"""Reads the recent rows of the index of results, which x-sink and x-sump write, and sums them up."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from asya.client.resources import s3_errors
from asya.ends.results import RECENT_PREFIX, ResultRow
from asya.protocol import states
from asya.tasks.failures import kind_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from asya.client.connection import Connection

_THREADS = 16


def read_rows(connection: Connection, since: datetime, until: datetime) -> Iterator[ResultRow]:
    """Read the rows of the days of a time span, in any order.

    Raises:
        CommandError: S3 fails or denies access.
    """
    s3, results = connection.s3(), connection.results

    def read(key: str) -> list[ResultRow]:
        body = s3.get_object(Bucket=results.bucket, Key=key)["Body"].read()
        return [row for row in map(_row, body.splitlines()) if row is not None]

    with s3_errors("read", f"the index of results in {results.uri}"), ThreadPoolExecutor(_THREADS) as executor:
        for day in range((until.date() - since.date()).days + 1):
            prefix = f"{results.prefix}{RECENT_PREFIX}dt={since.date() + timedelta(days=day)}/"
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket=results.bucket, Prefix=prefix):
                for rows in executor.map(read, [item["Key"] for item in page.get("Contents", [])]):
                    yield from rows


def _row(line: bytes) -> ResultRow | None:
    """Decode a row; None for a line of another program or a later version."""
    try:
        return msgspec.json.decode(line, type=ResultRow)
    except msgspec.MsgspecError:
        return None


@dataclass(frozen=True)
class Ends:
    """The tasks that started at one actor and have ended.

    Attributes:
        start: The first actor of their routes.
        succeeded, failed, canceled: The number of tasks.
        median, slowest: Seconds from creation to end; None if no task tells them.
    """

    start: str
    succeeded: int
    failed: int
    canceled: int
    median: float | None
    slowest: float | None


@dataclass(frozen=True)
class Cause:
    """The envelopes that failed at one actor with the same error; slices and other children count too.

    Attributes:
        count: Those whose failure is open.
        settled: The others: they were replayed, dismissed or overtaken.
    """

    actor: str
    error: str
    count: int
    settled: int = 0


@dataclass(frozen=True)
class JobCost:
    """The ended job runs of one actor.

    Attributes:
        dollars: By list price.
    """

    actor: str
    runs: int
    vcpu_hours: float
    memory_gb_hours: float
    dollars: float


@dataclass(frozen=True)
class Summary:
    """What ended since a time.

    Attributes:
        since: The time, as rows have it.
    """

    since: str
    ends: tuple[Ends, ...]
    causes: tuple[Cause, ...]
    jobs: tuple[JobCost, ...] = ()
    prices: str = ""


def last_ends(rows: Iterable[ResultRow], since: str) -> list[ResultRow]:
    """Return the last end of each task since a time.

    Args:
        rows: The rows in any order. A repeated one, and an end that a later one has replaced, count once.
        since: The earliest end.
    """
    last: dict[str, ResultRow] = {}
    for row in sorted(rows, key=lambda row: (row.generation, row.ended_at)):
        if row.ended_at >= since:
            last[row.id] = row
    return list(last.values())


def summarize(
    rows: Iterable[ResultRow], since: str, start: str = "", tool: str = "", settled: Collection[str] = ()
) -> Summary:
    """Sum up the ends since a time.

    Args:
        rows: The rows, as for `last_ends`.
        since: The earliest end.
        start: Only what belongs to routes that start at this actor; empty for all.
        tool: Only what belongs to tasks of this tool; empty for all.
        settled: The ids of the tasks whose failures are settled.
    """
    last = {row.id: row for row in last_ends(rows, since) if tool in ("", row.tool)}
    tasks = [row for row in last.values() if row.parent_id is None and start in ("", _start(row))]
    roots = {row.id for row in tasks}
    failed = [row for row in last.values() if row.phase == states.FAILED and (not start or row.root_id in roots)]
    by_start: dict[str, list[ResultRow]] = {}
    for row in tasks:
        by_start.setdefault(_start(row), []).append(row)
    causes = Counter((row.last_actor, _error(row)) for row in failed if row.id not in settled)
    others = Counter((row.last_actor, _error(row)) for row in failed if row.id in settled)
    return Summary(
        since=since,
        ends=tuple(_ends(name, each) for name, each in sorted(by_start.items())),
        causes=tuple(
            Cause(actor, error, causes[actor, error], others[actor, error])
            for actor, error in (*(each for each, _ in causes.most_common()), *sorted(others.keys() - causes.keys()))
        ),
    )


def _ends(start: str, rows: list[ResultRow]) -> Ends:
    phases = Counter(row.phase for row in rows)
    seconds = sorted(row.seconds for row in rows if row.seconds is not None)
    return Ends(
        start=start,
        succeeded=phases[states.SUCCEEDED],
        failed=phases[states.FAILED],
        canceled=phases[states.CANCELED],
        median=seconds[len(seconds) // 2] if seconds else None,
        slowest=seconds[-1] if seconds else None,
    )


def _start(row: ResultRow) -> str:
    return row.route[0] if row.route else row.last_actor


def _error(row: ResultRow) -> str:
    return kind_of(row.error_message or "", row.error_type) if row.error_type else row.reason or "no error"
