"""Reads and writes the records of job runs (`protocol §10`); `run_items` defines the items."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import ClientError

from asya.messaging.aws.conditional_writes import failed_conditions, is_condition_failure
from asya.protocol.job_runs import Manifest, Usage
from asya.protocol.times import format_time
from asya.spark.aws.run_items import (
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

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

    from asya.spark.aws.run_items import Item


class RunRecords:
    """The records of all heavy actors' runs.

    Args:
        retention: how long a record is kept.
    """

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str, retention: timedelta) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._retention = retention

    def latest(self, actor: str) -> int:
        """The number of the actor's latest run; 0 before the first run."""
        item = self._get(actor, "latest")
        return int(item["number"]["N"]) if item else 0

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
        try:
            self._dynamodb.transact_write_items(
                TransactItems=[
                    {
                        "Put": {
                            "TableName": self._table,
                            "Item": {
                                **run_key(record.actor, digits(record.number)),
                                "state": {"S": record.state},
                                "formed_at": {"S": record.formed_at},
                                "members": {"N": str(len(manifest.members))},
                                **({"waiting_since": {"S": record.waiting_since}} if record.waiting_since else {}),
                                "manifest_digest": {"S": digest},
                                **({"lingers": {"BOOL": True}} if record.lingers else {}),
                                "expires_at": {"N": str(int((now + self._retention).timestamp()))},
                            },
                            "ConditionExpression": "attribute_not_exists(pk)",
                        }
                    },
                    {"Put": {"TableName": self._table, "Item": open_key(record.actor, record.number)}},
                    {
                        "Update": {
                            "TableName": self._table,
                            "Key": run_key(record.actor, "latest"),
                            "UpdateExpression": "SET #number = :number",
                            "ConditionExpression": "attribute_not_exists(#number) OR #number < :number",
                            "ExpressionAttributeNames": {"#number": "number"},
                            "ExpressionAttributeValues": {":number": {"N": str(record.number)}},
                        }
                    },
                ]
            )
        except ClientError as error:
            if not failed_conditions(error):
                raise
            return self.get(record.actor, record.number) or record
        return record

    def mark_started(self, actor: str, number: int, job_run_id: str) -> None:
        """Records that EMR Serverless has a run; a closed run stays closed."""
        self._update(
            actor,
            number,
            "SET #state = :started, job_run_id = :id",
            "#state = :formed",
            {":started": {"S": "started"}, ":formed": {"S": "formed"}, ":id": {"S": job_run_id}},
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
        if application_id:
            changes.append("application_id = :application")
        values: Item = {":state": {"S": state}, ":details": {"S": details}, ":rank": {"N": str(state_rank(state))}}
        if application_id:
            values[":application"] = {"S": application_id}
        if usage is not None:
            changes.append("#usage = :usage")
            values[":usage"] = {"S": msgspec.json.encode(usage).decode()}
        if running_at is not None:
            changes.append("running_at = if_not_exists(running_at, :running_at)")
            values[":running_at"] = {"S": running_at}
        condition = "attribute_not_exists(job_rank) OR job_rank < :rank"
        self._update(actor, number, "SET " + ", ".join(changes), condition, values)

    def claim_turn(self, actor: str, number: int, turn: int, owner: str) -> bool:
        """Claims a turn of the watch; one owner gets each turn, and gets it again on a redelivery."""
        return self._update(
            actor,
            number,
            "SET watch_turn = :turn, watch_owner = :owner",
            "attribute_not_exists(watch_turn) OR watch_turn < :turn OR (watch_turn = :turn AND watch_owner = :owner)",
            {":turn": {"N": str(turn)}, ":owner": {"S": owner}},
        )

    def failures(self, actor: str, origin: int) -> int:
        """The number of failed runs with this origin, the origin included."""
        key = failures_key(actor, origin)
        item = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")
        return int(item["deaths"]["N"]) if item else 0

    def resolve(
        self, actor: str, number: int, resolution: Resolution, *, now: datetime, failed_origin: int | None = None
    ) -> Resolution:
        """Records a resolution; the first one stands and is returned.

        Args:
            failed_origin: the origin whose failures are counted, if the run failed.
        """
        update: TransactWriteItemTypeDef = {
            "Update": {
                "TableName": self._table,
                "Key": run_key(actor, digits(number)),
                "UpdateExpression": "SET #source = :source, attempt = :attempt, parts = :parts, fate = :fate,"
                " at_work = :convicted, suspects = :suspects, started = :started",
                "ConditionExpression": "attribute_exists(pk) AND attribute_not_exists(#source) AND #state <> :closed",
                "ExpressionAttributeNames": {"#source": "source", "#state": "state"},
                "ExpressionAttributeValues": {
                    ":source": {"S": resolution.source},
                    ":attempt": {"S": resolution.attempt},
                    ":parts": {"N": str(resolution.parts)},
                    ":fate": {"S": resolution.decision.fate},
                    ":convicted": {
                        "N": str(NO_MEMBER if resolution.decision.convicted is None else resolution.decision.convicted)
                    },
                    ":suspects": {"L": [{"N": str(index)} for index in resolution.decision.suspects]},
                    ":started": {"BOOL": resolution.started},
                    ":closed": {"S": "closed"},
                },
            }
        }
        count: TransactWriteItemTypeDef = {
            "Update": {
                "TableName": self._table,
                "Key": failures_key(actor, failed_origin or number),
                "UpdateExpression": "ADD deaths :one SET expires_at = :expires",
                "ExpressionAttributeValues": {
                    ":one": {"N": "1"},
                    ":expires": {"N": str(int((now + self._retention).timestamp()))},
                },
            }
        }
        try:
            self._dynamodb.transact_write_items(TransactItems=[update, count] if failed_origin else [update])
        except ClientError as error:
            if not failed_conditions(error):
                raise
        record = self.get(actor, number)
        return record.resolution if record and record.resolution else resolution

    def acquire_lease(self, actor: str, number: int, owner: str, *, until: datetime, now: datetime) -> bool:
        """Leases the routing of a run; this only saves work, because routing is repeatable."""
        return self._update(
            actor,
            number,
            "SET lease_owner = :owner, lease_until = :until",
            "#state <> :closed AND (attribute_not_exists(lease_until) OR lease_until < :now OR lease_owner = :owner)",
            {
                ":owner": {"S": owner},
                ":until": {"S": format_time(until)},
                ":now": {"S": format_time(now)},
                ":closed": {"S": "closed"},
            },
        )

    def release_lease(self, actor: str, number: int, owner: str) -> None:
        """Ends a lease, so that another invocation continues."""
        self._update(actor, number, "REMOVE lease_owner, lease_until", "lease_owner = :owner", {":owner": {"S": owner}})

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
            {
                ":part": {"N": str(after.part)},
                ":line": {"N": str(after.line)},
                ":frame": {"N": str(after.frame)},
                ":lost": {"N": str(after.missing)},
                ":outcomes": {"S": msgspec.json.encode(after.outcomes).decode()},
            },
        )

    def close(self, actor: str, number: int) -> None:
        """Closes a run whose results are all routed."""
        self._dynamodb.transact_write_items(
            TransactItems=[
                {
                    "Update": {
                        "TableName": self._table,
                        "Key": run_key(actor, digits(number)),
                        "UpdateExpression": "SET #state = :closed",
                        "ConditionExpression": "attribute_exists(pk)",
                        "ExpressionAttributeNames": {"#state": "state"},
                        "ExpressionAttributeValues": {":closed": {"S": "closed"}},
                    }
                },
                {"Delete": {"TableName": self._table, "Key": open_key(actor, number)}},
            ]
        )

    def open_numbers(self, actor: str) -> Iterator[int]:
        """The numbers of the open runs, oldest first."""
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="pk = :actor",
            ExpressionAttributeValues={":actor": {"S": f"OPEN#{actor}"}},
            ConsistentRead=True,
        )
        for page in pages:
            yield from (int(item["sk"]["S"]) for item in page["Items"])

    def recent(self, actor: str, *, before: int | None = None) -> Iterator[RunRecord]:
        """The records of an actor's runs, newest first, page by page as they are consumed.

        Args:
            before: only runs with a lower number.
        """
        # Digits sort before `latest`, and `:` sorts between them.
        end = ":" if before is None else digits(before)
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="pk = :runs AND sk < :end",
            ExpressionAttributeValues={":runs": run_key(actor, "")["pk"], ":end": {"S": end}},
            ScanIndexForward=False,
            ConsistentRead=True,
        )
        for page in pages:
            yield from (decode_record(actor, int(item["sk"]["S"]), item) for item in page["Items"])

    def _get(self, actor: str, sort: str) -> "Item":
        answer = self._dynamodb.get_item(TableName=self._table, Key=run_key(actor, sort), ConsistentRead=True)
        return answer.get("Item", {})

    def _update(self, actor: str, number: int, update: str, condition: str, values: "Item") -> bool:
        """Updates a run if it exists and the condition holds; returns whether it did."""
        full_condition = f"attribute_exists(pk) AND ({condition})"
        names = {name: name[1:] for name in ("#state", "#usage") if name in update + full_condition}
        try:
            self._dynamodb.update_item(
                TableName=self._table,
                Key=run_key(actor, digits(number)),
                UpdateExpression=update,
                ConditionExpression=full_condition,
                ExpressionAttributeValues=values,
                **({"ExpressionAttributeNames": names} if names else {}),  # type: ignore[arg-type]
            )
        except ClientError as error:
            if not is_condition_failure(error):
                raise
            return False
        return True
