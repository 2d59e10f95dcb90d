"""Reads and writes the records of job runs (`protocol §10`).

Keys in the table `asya-{namespace}-pending`; stored items use them, so they never change:

- run: `RUN#{actor}` / `{number:010d}`; `RUN#{actor}` / `latest` holds the highest number and never expires.
- open: `OPEN#{actor}` / `{number:010d}` exists until the run is closed.
- resident run: `RESIDENT#{actor}` / `{number:010d}` exists until its job run has ended.
- failures: `DEATHS#{actor}` / `{number:010d}` counts the failed runs of one origin, the origin included.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, cast

import msgspec

from asya.function.aws.table import Table, delete, in_partition, put, update, where
from asya.function.aws.table_items import Item, Key, Value
from asya.heavy.aws.run_files import ResultSource
from asya.heavy.results import RunOutcomes
from asya.heavy.run_failures import CHARGED, FailureDecision, Fate
from asya.protocol.job_runs import NUMBER_DIGITS, Manifest, Place, RunFolder, Usage
from asya.protocol.times import format_time

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# formed: the manifest exists · started: EMR Serverless has the run, its members are no longer pending · closed: all is routed
RunState = Literal["formed", "started", "closed"]
NO_MEMBER = -1
# The states of EMR Serverless in order. A run never goes back, but events may arrive late.
_RANKS = {
    "SUBMITTED": 0,
    "QUEUED": 1,
    "PENDING": 2,
    "SCHEDULED": 3,
    "RUNNING": 4,
    "CANCELLING": 5,
    "SUCCESS": 6,
    "FAILED": 6,
    "CANCELLED": 6,
}


@dataclass(frozen=True, slots=True)
class Resolution:
    """The results of a run that count, and the fate of its other members; recorded once, so routing is repeatable.

    Attributes:
        source: an attempt's commit, the first `parts` parts of a failed attempt's journal, or none.
        started: whether user code was called.
    """

    source: ResultSource
    attempt: str = ""
    parts: int = 0
    decision: FailureDecision = CHARGED
    started: bool = True


@dataclass(frozen=True, slots=True, order=True)
class RoutingCursor:
    """The progress of the routing of a run.

    Attributes:
        part: number of routed parts.
        line: in the next part, the line where the next result begins.
        frame: number of sent frames of that result.
        missing: number of handled members without a result, after all parts; stored as `cursor_lost`.
        outcomes: the members before this place by outcome.
    """

    part: int = 0
    line: int = 0
    frame: int = 0
    missing: int = 0
    outcomes: RunOutcomes = field(default=RunOutcomes(), compare=False)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of one run.

    Attributes:
        formed_at, running_at: RFC 3339.
        job_run_id: the id at EMR Serverless, once started.
        members: number of envelopes in the manifest.
        job_state, details: the last state at EMR Serverless, with its reason.
        usage: the resources used, once the run has ended.
        application_id: the Spark application, once an event has named it.
        waiting_since: when a member's first run was formed, if it lacked capacity (RFC 3339); the earliest of all members.
        manifest_digest: the SHA-256 of the manifest.
        place: the place in the resident run that has, or had, the run as a batch; None if it has a job run of its own.
        is_placed: whether it is decided which job run takes it. Only actors whose runs linger have the choice.
        lingers: whether it may be resident, or a batch of a resident run.
        size: the name of its size; empty if its actor has none.
    """

    actor: str
    number: int
    state: RunState
    formed_at: str
    job_run_id: str | None = None
    resolution: Resolution | None = None
    cursor: RoutingCursor = RoutingCursor()
    members: int = 0
    running_at: str | None = None
    job_state: str = ""
    details: str = ""
    usage: Usage | None = None
    application_id: str = ""
    waiting_since: str = ""
    manifest_digest: str = ""
    place: Place | None = None
    is_placed: bool = False
    lingers: bool = False
    size: str = ""

    @property
    def outcomes(self) -> RunOutcomes | None:
        """Its members by outcome, as far as they are routed; None without any, and if a version that did not count closed it."""
        counted = self.cursor.outcomes
        is_complete = counted.total == self.members
        return counted if counted.total and (is_complete or self.state != "closed") else None

    @property
    def is_resident(self) -> bool:
        """Whether it has a job run of its own, which lingers."""
        return self.lingers and self.place is None

    @property
    def folder(self) -> RunFolder:
        """Where the files of the run are."""
        return RunFolder(self.actor, self.number, self.place)


def job_run_number(record: RunRecord) -> int:
    """The number of the run whose job run does the work: its own, or that of the resident run whose batch it is."""
    return record.number if record.place is None else record.place.number


def state_rank(state: str) -> int:
    """The rank of a state in the order of EMR Serverless; -1 for an unknown state."""
    return _RANKS.get(state, -1)


def digits(number: int) -> str:
    """A run's number as a sort key."""
    return f"{number:0{NUMBER_DIGITS}d}"


def run_key(actor: str, sort: str) -> Key:
    """The key of a run, or of `latest`."""
    return Key(f"RUN#{actor}", sort)


def failures_key(actor: str, origin: int) -> Key:
    """The key of the failure count of an origin."""
    return Key(f"DEATHS#{actor}", digits(origin))


def resident_key(actor: str, number: int) -> Key:
    """The key of the item that exists while a resident run may have a batch."""
    return Key(f"RESIDENT#{actor}", digits(number))


def open_key(actor: str, number: int) -> Key:
    """The key of the item that exists while the run is open."""
    return Key(f"OPEN#{actor}", digits(number))


def decode_record(actor: str, number: int, item: Item) -> RunRecord:
    """Decodes the item of a run."""
    resolution = None
    if "source" in item:
        source = cast("ResultSource", item.text("source"))
        convicted = item.integer("at_work")
        decision = FailureDecision(
            cast("Fate", item.text("fate")),
            None if convicted == NO_MEMBER else convicted,
            tuple(item.list_of(int, "suspects")),
            item.text("larger", ""),
        )
        resolution = Resolution(source, item.text("attempt"), item.integer("parts"), decision, item.flag("started"))
    outcomes = msgspec.json.decode(item.text("outcomes", "{}"), type=RunOutcomes)
    part, line, frame, lost = (item.integer(f"cursor_{name}", 0) for name in ("part", "line", "frame", "lost"))
    resident = item.integer("place_run", 0)
    return RunRecord(
        actor,
        number,
        cast("RunState", item.text("state")),
        item.text("formed_at"),
        item.text("job_run_id", None),
        resolution,
        RoutingCursor(part, line, frame, lost, outcomes),
        item.integer("members"),
        item.text("running_at", None),
        item.text("job_state", ""),
        item.text("details", ""),
        msgspec.json.decode(item.text("usage"), type=Usage) if "usage" in item else None,
        item.text("application_id", ""),
        item.text("waiting_since", ""),
        item.text("manifest_digest"),
        Place(resident, item.integer("place_batch")) if resident else None,
        "place_run" in item,
        "lingers" in item,
        item.text("size", ""),
    )


class RunRecords:
    """The records of all heavy actors' runs.

    Args:
        retention: how long a record is kept.
    """

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str, retention: timedelta) -> None:
        self._table = Table(dynamodb, table)
        self._retention = retention

    def latest(self, actor: str) -> int:
        """The number of the actor's latest run; 0 before the first run."""
        return self._get(actor, "latest").integer("number", 0)

    def get(self, actor: str, number: int) -> RunRecord | None:
        """The record of a run; None if it is unknown or expired."""
        item = self._get(actor, digits(number))
        return decode_record(actor, number, item) if item else None

    def open(self, manifest: Manifest, *, now: datetime, digest: str) -> RunRecord:
        """Records a formed run; an existing record stays unchanged and is returned.

        Args:
            digest: the SHA-256 of the stored manifest. A job cannot write records, so the digest protects the manifest.
        """
        record = RunRecord(
            manifest.actor,
            manifest.number,
            "formed",
            manifest.formed_at,
            members=len(manifest.members),
            waiting_since=min(
                (member.waiting_since for member in manifest.members if member.waiting_since), default=""
            ),
            manifest_digest=digest,
            lingers=manifest.linger > 0,
            size=manifest.size,
        )
        formed = put(
            run_key(record.actor, digits(record.number)),
            {
                "state": record.state,
                "formed_at": record.formed_at,
                "members": record.members,
                "waiting_since": record.waiting_since or None,
                "manifest_digest": digest,
                "lingers": record.lingers or None,
                "size": record.size or None,
                "expires_at": int((now + self._retention).timestamp()),
            },
        )
        latest = update(run_key(record.actor, "latest"), "SET #number = :number", number=record.number)
        is_new = self._table.transact(
            [
                formed.if_absent(),
                put(open_key(record.actor, record.number), {}),
                latest.only_if("attribute_not_exists(#number) OR #number < :number"),
            ]
        )
        return record if is_new else self.get(record.actor, record.number) or record

    def mark_started(self, actor: str, number: int, job_run_id: str) -> None:
        """Records that EMR Serverless has a run; a closed run stays closed."""
        self._update(
            actor,
            number,
            "SET #state = :started, job_run_id = :id",
            "#state = :formed",
            started="started",
            formed="formed",
            id=job_run_id,
        )

    def record_state(
        self,
        actor: str,
        number: int,
        state: str,
        *,
        details: str = "",
        usage: Usage | None = None,
        running_at: str | None = None,
        application_id: str = "",
    ) -> None:
        """Records the state of a job run; an event that arrives late never sets an earlier state."""
        changes = ["job_state = :state", "details = :details", "job_rank = :rank"]
        values: dict[str, Value] = {"state": state, "details": details, "rank": state_rank(state)}
        if application_id:
            changes.append("application_id = :application")
            values["application"] = application_id
        if usage is not None:
            changes.append("#usage = :usage")
            values["usage"] = msgspec.json.encode(usage).decode()
        if running_at is not None:
            changes.append("running_at = if_not_exists(running_at, :running_at)")
            values["running_at"] = running_at
        condition = "attribute_not_exists(job_rank) OR job_rank < :rank"
        self._update(actor, number, "SET " + ", ".join(changes), condition, **values)

    def claim_turn(self, actor: str, number: int, turn: int, owner: str) -> bool:
        """Claims a turn of the watch; one owner gets each turn, and gets it again on a redelivery."""
        return self._update(
            actor,
            number,
            "SET watch_turn = :turn, watch_owner = :owner",
            "attribute_not_exists(watch_turn) OR watch_turn < :turn OR (watch_turn = :turn AND watch_owner = :owner)",
            turn=turn,
            owner=owner,
        )

    def failures(self, actor: str, origin: int) -> int:
        """The number of failed runs with this origin, the origin included."""
        return self._table.get(failures_key(actor, origin)).integer("deaths", 0)

    def resolve(
        self, actor: str, number: int, resolution: Resolution, *, now: datetime, failed_origin: int | None = None
    ) -> Resolution:
        """Records a resolution; the first one stands and is returned.

        Args:
            failed_origin: the origin whose failures are counted, if the run failed.
        """
        decision = resolution.decision
        resolved = update(
            run_key(actor, digits(number)),
            "SET #source = :source, attempt = :attempt, parts = :parts, fate = :fate,"
            " at_work = :convicted, suspects = :suspects, started = :started, larger = :larger",
            source=resolution.source,
            attempt=resolution.attempt,
            parts=resolution.parts,
            fate=decision.fate,
            convicted=NO_MEMBER if decision.convicted is None else decision.convicted,
            suspects=decision.suspects,
            started=resolution.started,
            larger=decision.larger,
        ).only_if("attribute_exists(pk) AND attribute_not_exists(#source) AND #state <> :closed", closed="closed")
        counted = update(
            failures_key(actor, failed_origin or number),
            "ADD deaths :one SET expires_at = :expires",
            one=1,
            expires=int((now + self._retention).timestamp()),
        )
        self._table.transact([resolved, counted] if failed_origin else [resolved])
        record = self.get(actor, number)
        return record.resolution if record and record.resolution else resolution

    def acquire_lease(self, actor: str, number: int, owner: str, *, until: datetime, now: datetime) -> bool:
        """Leases the routing of a run; this only saves work, because routing is repeatable."""
        return self._update(
            actor,
            number,
            "SET lease_owner = :owner, lease_until = :until",
            "#state <> :closed AND (attribute_not_exists(lease_until) OR lease_until < :now OR lease_owner = :owner)",
            owner=owner,
            until=format_time(until),
            now=format_time(now),
            closed="closed",
        )

    def release_lease(self, actor: str, number: int, owner: str) -> None:
        """Ends a lease, so that another invocation continues."""
        self._update(actor, number, "REMOVE lease_owner, lease_until", "lease_owner = :owner", owner=owner)

    def advance(self, actor: str, number: int, before: RoutingCursor, after: RoutingCursor) -> None:
        """Records that everything before `after` was sent; a cursor that is further ahead stands."""
        if after <= before:
            return
        self._update(
            actor,
            number,
            "SET cursor_part = :part, cursor_line = :line, cursor_frame = :frame, cursor_lost = :lost, outcomes = :outcomes",
            "attribute_not_exists(cursor_part) OR cursor_part < :part"
            " OR (cursor_part = :part AND (cursor_line < :line OR (cursor_line = :line"
            " AND (cursor_frame < :frame OR (cursor_frame = :frame AND cursor_lost < :lost)))))",
            part=after.part,
            line=after.line,
            frame=after.frame,
            lost=after.missing,
            outcomes=msgspec.json.encode(after.outcomes).decode(),
        )

    def close(self, actor: str, number: int) -> None:
        """Closes a run whose results are all routed.

        Raises:
            LookupError: it has no record.
        """
        closed = update(run_key(actor, digits(number)), "SET #state = :closed", closed="closed")
        if not self._table.transact([closed.only_if("attribute_exists(pk)"), delete(open_key(actor, number))]):
            raise LookupError(f"run {number} of {actor} has no record; it may have expired")

    def open_numbers(self, actor: str) -> Iterator[int]:
        """The numbers of the open runs, oldest first."""
        open_runs = self._table.query(in_partition(open_key(actor, 0).pk))
        return (int(item.key.sk) for item in open_runs)

    def recent(self, actor: str, *, before: int | None = None) -> Iterator[RunRecord]:
        """The records of an actor's runs, newest first, page by page as they are consumed.

        Args:
            before: only runs with a lower number.
        """
        # Digits sort before `latest`, and `:` sorts between them.
        end = ":" if before is None else digits(before)
        query = where("pk = :runs AND sk < :end", runs=run_key(actor, "").pk, end=end, backwards=True)
        return (decode_record(actor, int(item.key.sk), item) for item in self._table.query(query))

    def _get(self, actor: str, sort: str) -> Item:
        return self._table.get(run_key(actor, sort))

    def _update(self, actor: str, number: int, expression: str, condition: str, /, **values: Value) -> bool:
        """Updates a run if it exists and the condition holds; returns whether it did."""
        change = update(run_key(actor, digits(number)), expression)
        return bool(self._table.write(change.only_if(f"attribute_exists(pk) AND ({condition})", **values)))
