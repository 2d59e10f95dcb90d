"""The job runs of heavy actors, for operators (`protocol §13`, operations)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from asya.capabilities.operations.aws.job_runs import (
    EnvelopeLine,
    RunLine,
    RunReader,
    RunReport,
    line_of,
    read_report,
    read_runs,
)
from asya.capabilities.operations.cursors import decode_cursor, encode_cursor, invalid_cursor
from asya.capabilities.operations.prices import Prices
from asya.gateway.http.router import Request, Response
from asya.gateway.operations.requests import available
from asya.heavy.aws.run_records import RunRecord, job_run_number
from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.protocol.job_runs import driver_log_key, parse_run_id
from asya.protocol.mesh_table import MeshTable
from asya.tasks.listing import DEFAULT_LIMIT, LARGEST_LIMIT

MOST_MEMBERS = 500
_RESULT_BYTES = 64 * 1024 * 1024
"""Bytes of results that an answer reads; nothing is read of larger ones."""
_ERROR_LIMIT = 1024
"""Characters of an envelope's error."""


class RunPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of job runs: the open ones first, then the others, newest first.

    Attributes:
        prices: what the dollars are computed from.
    """

    items: list[RunLine]
    prices: str
    next_cursor: str | None = None


@dataclass(frozen=True)
class RunDetails(RunReport):
    """One job run with a page of its envelopes.

    Attributes:
        log_uri: the driver's log in S3; None before its job run has reported.
        next_cursor: set if there are more envelopes.
    """

    actor: str = ""
    log_uri: str | None = None
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class RunRoutes:
    """Lists and shows job runs.

    Attributes:
        bucket: the mesh's bucket.
    """

    mesh: MeshTable
    reader: RunReader
    prices: Prices
    bucket: str

    def all(self, request: Request, _now: datetime) -> Response:
        """`GET …/runs`: the runs of one heavy actor, or of all."""
        actors = self._actors(request.query.get("actor"))
        limit = _limit(request.query, DEFAULT_LIMIT, LARGEST_LIMIT)
        scope, cursor = f"runs {actors}", request.query.get("cursor")
        before = {} if cursor is None else _places(actors, decode_cursor(scope, cursor, 1)[0])
        with available("the job runs"):
            records, has_more = read_runs(
                self.reader.records, actors, before=before, limit=limit, has_open=cursor is None
            )
        ended = records[-limit:] if has_more else []
        for record in ended:
            before[record.actor] = min(record.number, before.get(record.actor, record.number))
        place = ",".join(str(before.get(actor, "")) for actor in actors)
        return Response(
            200,
            RunPage(
                items=[line_of(self.reader.run_id(record), record, self.prices) for record in records],
                prices=self.prices.source,
                next_cursor=encode_cursor(scope, (place,)) if has_more else None,
            ),
        )

    def run(self, request: Request, _now: datetime) -> Response:
        """`GET …/runs/{run_id}`: one run with its envelopes, who is charged, and what it cost."""
        name = request.parameters["run_id"]
        limit = _limit(request.query, MOST_MEMBERS, MOST_MEMBERS)
        scope, cursor = f"run {name}", request.query.get("cursor")
        first = 0 if cursor is None else _number(decode_cursor(scope, cursor, 1)[0])
        with available("the job runs"):
            place = parse_run_id(name, self.mesh.namespace)
            record = None if place is None else self.reader.records.get(*place)
            if record is None:
                problem = f"there is no job run {name[: names.QUEUE_NAME_LIMIT]!r}; the records of old runs expire"
                raise ApiError(404, "not_found", problem, "run_id")
            report = read_report(self.reader, record, self.prices, most_bytes=_RESULT_BYTES)
        members = tuple(map(_shortened, report.members[first : first + limit]))
        has_more = first + limit < len(report.members)
        shown = vars(report) | {"members": members}
        cursor = encode_cursor(scope, (str(first + limit),)) if has_more else None
        return Response(200, RunDetails(**shown, actor=record.actor, log_uri=self._log_uri(record), next_cursor=cursor))

    def _actors(self, actor: str | None) -> list[str]:
        heavy = sorted(name for name, each in self.mesh.actors.items() if each.kind == "spark")
        if actor is not None and actor not in heavy:
            problem = f"there is no heavy actor {actor[: names.LABEL_LIMIT]!r}"
            raise ApiError(404, "unknown_actor", problem, "actor")
        return heavy if actor is None else [actor]

    def _log_uri(self, record: RunRecord) -> str | None:
        if not record.job_run_id or not record.application_id:
            return None
        key = driver_log_key(record.actor, job_run_number(record), record.application_id, record.job_run_id)
        return f"s3://{self.bucket}/{key}"


def _limit(query: Mapping[str, str], default: int, largest: int) -> int:
    text = query.get("limit", str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= largest):
        raise ApiError(400, "invalid_field", f"limit must be a number from 1 to {largest}", "limit")
    return int(text)


def _places(actors: list[str], text: str) -> dict[str, int]:
    """The number of the last run that was shown, by actor."""
    numbers = text.split(",")
    if len(numbers) != len(actors):
        raise invalid_cursor()
    return {actor: _number(number) for actor, number in zip(actors, numbers, strict=True) if number}


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise invalid_cursor()
    return int(text)


def _shortened(line: EnvelopeLine) -> EnvelopeLine:
    return EnvelopeLine(**(vars(line) | {"error": line.error[:_ERROR_LIMIT]}))
