"""Reads and writes the records of job runs (`protocol §10`); `run_items` defines the items."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from asya.function.aws.table import Table, delete, in_partition, put, update, where
from asya.function.aws.table_items import Item, Value
from asya.heavy.aws.run_items import (
    NO_MEMBER,
    Resolution,
    RoutingCursor,
    RunRecord,
    decode_record,
    digits,
    failures_key,
    open_key,
    run_key,
    state_rank,
)
from asya.protocol.job_runs import Manifest, Usage
from asya.protocol.times import format_time

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


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
            " at_work = :convicted, suspects = :suspects, started = :started",
            source=resolution.source,
            attempt=resolution.attempt,
            parts=resolution.parts,
            fate=decision.fate,
            convicted=NO_MEMBER if decision.convicted is None else decision.convicted,
            suspects=decision.suspects,
            started=resolution.started,
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
