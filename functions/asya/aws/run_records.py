"""What is known about each job run (`protocol §10`).

Keys (they can never change), in the table `asya-{namespace}-pending`:

- run: `RUN#{actor}` / `{number:010d}`; `RUN#{actor}` / `latest` holds the highest number ever, and never expires.
- open: `OPEN#{actor}` / `{number:010d}`, there as long as the run is not closed.
- deaths: `DEATHS#{actor}` / `{number:010d}`: how many of the runs died that this one was divided into, itself included.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, cast

import msgspec
from botocore.exceptions import ClientError

from asya.aws.refusals import is_condition_failure, refused_conditions
from asya.aws.run_results import Source
from asya.protocol.job_runs import NUMBER_DIGITS, Manifest, Usage
from asya.protocol.times import format_time
from asya.routing.run_deaths import CHARGED, Fate, Verdict

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, TransactWriteItemTypeDef

    Item = dict[str, AttributeValueTypeDef]

# formed: its manifest is there · started: its envelopes are pending no more and EMR Serverless has it · closed: all is routed
State = Literal["formed", "started", "closed"]
_NOBODY = -1
# The states of EMR Serverless, by how far a run is. The service never goes back, but what it tells may come late.
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
class Settlement:
    """Whose results count, and what becomes of members without any; decided once, so that routing it twice is the same.

    Attributes:
        source: an attempt's commit, the first `parts` parts of a dead one's journal, or none.
        started: whether the run came as far as user code.
    """

    source: Source
    attempt: str = ""
    parts: int = 0
    verdict: Verdict = CHARGED
    started: bool = True


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """How far the routing of a run has come.

    Attributes:
        part: parts done.
        line: in the part after those, the number of the line at which the next envelope begins.
        frame: frames of that envelope that have left.
        lost: members without a result that have been dealt with, after all parts.
    """

    part: int = 0
    line: int = 0
    frame: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run.

    Attributes:
        formed_at, running_at: RFC 3339.
        job_run_id: EMR Serverless's id of it, once known.
        members: how many envelopes it was formed of.
        job_state: what EMR Serverless called its state last, with its words on it.
        usage: what it took, once it is over.
        application_id: the Spark application that it is on, once it has been heard of.
    """

    actor: str
    number: int
    state: State
    formed_at: str
    job_run_id: str | None = None
    settlement: Settlement | None = None
    cursor: Cursor = Cursor()
    members: int = 0
    running_at: str | None = None
    job_state: str = ""
    details: str = ""
    usage: Usage | None = None
    application_id: str = ""


class RunRecords:
    """The runs of all heavy actors of a mesh."""

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str, keep: timedelta) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._keep = keep

    def latest(self, actor: str) -> int:
        """The number of the actor's latest run, 0 if there was none."""
        item = self._get(actor, "latest")
        return int(item["number"]["N"]) if item else 0

    def get(self, actor: str, number: int) -> RunRecord | None:
        """One run."""
        item = self._get(actor, _digits(number))
        return _record(actor, number, item) if item else None

    def open(self, manifest: Manifest, *, now: datetime) -> RunRecord:
        """Note that a manifest was written; what is noted already stays as it is."""
        record = RunRecord(manifest.actor, manifest.number, "formed", manifest.formed_at, members=len(manifest.members))
        try:
            self._dynamodb.transact_write_items(
                TransactItems=[
                    {
                        "Put": {
                            "TableName": self._table,
                            "Item": {
                                **_key(record.actor, _digits(record.number)),
                                "state": {"S": record.state},
                                "formed_at": {"S": record.formed_at},
                                "members": {"N": str(len(manifest.members))},
                                "expires_at": {"N": str(int((now + self._keep).timestamp()))},
                            },
                            "ConditionExpression": "attribute_not_exists(pk)",
                        }
                    },
                    {"Put": {"TableName": self._table, "Item": _open_key(record.actor, record.number)}},
                    {
                        "Update": {
                            "TableName": self._table,
                            "Key": _key(record.actor, "latest"),
                            "UpdateExpression": "SET #number = :number",
                            "ConditionExpression": "attribute_not_exists(#number) OR #number < :number",
                            "ExpressionAttributeNames": {"#number": "number"},
                            "ExpressionAttributeValues": {":number": {"N": str(record.number)}},
                        }
                    },
                ]
            )
        except ClientError as error:
            if not refused_conditions(error):
                raise
            return self.get(record.actor, record.number) or record
        return record

    def started(self, actor: str, number: int, job_run_id: str) -> None:
        """Note that EMR Serverless has it; a run that is closed already stays so."""
        self._change(
            actor,
            number,
            "SET #state = :started, job_run_id = :id",
            "#state = :formed",
            {":started": {"S": "started"}, ":formed": {"S": "formed"}, ":id": {"S": job_run_id}},
        )

    def note_state(
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
        """Note how the job run is; events come in any order, and what lies behind it already is not noted any more."""
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
        self._change(actor, number, "SET " + ", ".join(changes), condition, values)

    def take_watch(self, actor: str, number: int, turn: int, owner: str) -> bool:
        """Take a turn at watching a run: of several who would, one may go on, and again if it has to repeat its turn."""
        return self._change(
            actor,
            number,
            "SET watch_turn = :turn, watch_owner = :owner",
            "attribute_not_exists(watch_turn) OR watch_turn < :turn OR (watch_turn = :turn AND watch_owner = :owner)",
            {":turn": {"N": str(turn)}, ":owner": {"S": owner}},
        )

    def deaths(self, actor: str, origin: int) -> int:
        """How many of the runs died that this one was divided into, itself included."""
        key = _deaths_key(actor, origin)
        item = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")
        return int(item["deaths"]["N"]) if item else 0

    def settle(
        self, actor: str, number: int, settlement: Settlement, *, now: datetime, died_for: int | None = None
    ) -> Settlement:
        """Decide whose results count; the first decision stands, and is the answer.

        Args:
            died_for: the origin to count a death for, if the run died.
        """
        update: TransactWriteItemTypeDef = {
            "Update": {
                "TableName": self._table,
                "Key": _key(actor, _digits(number)),
                "UpdateExpression": "SET #source = :source, attempt = :attempt, parts = :parts, fate = :fate,"
                " at_work = :at_work, started = :started",
                "ConditionExpression": "attribute_exists(pk) AND attribute_not_exists(#source) AND #state <> :closed",
                "ExpressionAttributeNames": {"#source": "source", "#state": "state"},
                "ExpressionAttributeValues": {
                    ":source": {"S": settlement.source},
                    ":attempt": {"S": settlement.attempt},
                    ":parts": {"N": str(settlement.parts)},
                    ":fate": {"S": settlement.verdict.fate},
                    ":at_work": {
                        "N": str(_NOBODY if settlement.verdict.at_work is None else settlement.verdict.at_work)
                    },
                    ":started": {"BOOL": settlement.started},
                    ":closed": {"S": "closed"},
                },
            }
        }
        count: TransactWriteItemTypeDef = {
            "Update": {
                "TableName": self._table,
                "Key": _deaths_key(actor, died_for or number),
                "UpdateExpression": "ADD deaths :one SET expires_at = :expires",
                "ExpressionAttributeValues": {
                    ":one": {"N": "1"},
                    ":expires": {"N": str(int((now + self._keep).timestamp()))},
                },
            }
        }
        try:
            self._dynamodb.transact_write_items(TransactItems=[update, count] if died_for else [update])
        except ClientError as error:
            if not refused_conditions(error):
                raise
        record = self.get(actor, number)
        return record.settlement if record and record.settlement else settlement

    def lease(self, actor: str, number: int, owner: str, *, until: datetime, now: datetime) -> bool:
        """Take the routing of a run for a while. It only saves work: everything routed is the same whoever routes it."""
        return self._change(
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

    def release(self, actor: str, number: int, owner: str) -> None:
        """Let somebody else go on."""
        self._change(actor, number, "REMOVE lease_owner, lease_until", "lease_owner = :owner", {":owner": {"S": owner}})

    def advance(self, actor: str, number: int, before: Cursor, after: Cursor) -> None:
        """Note that everything up to `after` has left; if another has come further meanwhile, theirs stands."""
        if after <= before:
            return
        self._change(
            actor,
            number,
            "SET cursor_part = :part, cursor_line = :line, cursor_frame = :frame, cursor_lost = :lost",
            "attribute_not_exists(cursor_part) OR cursor_part < :part"
            " OR (cursor_part = :part AND (cursor_line < :line OR (cursor_line = :line"
            " AND (cursor_frame < :frame OR (cursor_frame = :frame AND cursor_lost < :lost)))))",
            {
                ":part": {"N": str(after.part)},
                ":line": {"N": str(after.line)},
                ":frame": {"N": str(after.frame)},
                ":lost": {"N": str(after.lost)},
            },
        )

    def close(self, actor: str, number: int) -> None:
        """Everything of this run has been routed."""
        self._dynamodb.transact_write_items(
            TransactItems=[
                {
                    "Update": {
                        "TableName": self._table,
                        "Key": _key(actor, _digits(number)),
                        "UpdateExpression": "SET #state = :closed",
                        "ConditionExpression": "attribute_exists(pk)",
                        "ExpressionAttributeNames": {"#state": "state"},
                        "ExpressionAttributeValues": {":closed": {"S": "closed"}},
                    }
                },
                {"Delete": {"TableName": self._table, "Key": _open_key(actor, number)}},
            ]
        )

    def open_numbers(self, actor: str) -> Iterator[int]:
        """The runs that are not closed, oldest first."""
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="pk = :actor",
            ExpressionAttributeValues={":actor": {"S": f"OPEN#{actor}"}},
            ConsistentRead=True,
        )
        for page in pages:
            yield from (int(item["sk"]["S"]) for item in page["Items"])

    def _get(self, actor: str, sort: str) -> "Item":
        answer = self._dynamodb.get_item(TableName=self._table, Key=_key(actor, sort), ConsistentRead=True)
        return answer.get("Item", {})

    def _change(self, actor: str, number: int, update: str, condition: str, values: "Item") -> bool:
        """Update a run if it is there and the condition holds; whether it did."""
        whole = f"attribute_exists(pk) AND ({condition})"
        used = {name: name[1:] for name in ("#state", "#usage") if name in update + whole}
        try:
            self._dynamodb.update_item(
                TableName=self._table,
                Key=_key(actor, _digits(number)),
                UpdateExpression=update,
                ConditionExpression=whole,
                ExpressionAttributeValues=values,
                **({"ExpressionAttributeNames": used} if used else {}),  # type: ignore[arg-type]
            )
        except ClientError as error:
            if not is_condition_failure(error):
                raise
            return False
        return True


def state_rank(state: str) -> int:
    """How far a job run is in this state; a state that nobody knows is nowhere."""
    return _RANKS.get(state, -1)


def _digits(number: int) -> str:
    return f"{number:0{NUMBER_DIGITS}d}"


def _key(actor: str, sort: str) -> "Item":
    return {"pk": {"S": f"RUN#{actor}"}, "sk": {"S": sort}}


def _deaths_key(actor: str, origin: int) -> "Item":
    return {"pk": {"S": f"DEATHS#{actor}"}, "sk": {"S": _digits(origin)}}


def _open_key(actor: str, number: int) -> "Item":
    return {"pk": {"S": f"OPEN#{actor}"}, "sk": {"S": _digits(number)}}


def _record(actor: str, number: int, item: "Item") -> RunRecord:
    settlement = None
    if "source" in item:
        source = cast("Source", item["source"]["S"])
        at_work = int(item["at_work"]["N"])
        verdict = Verdict(cast("Fate", item["fate"]["S"]), None if at_work == _NOBODY else at_work)
        settlement = Settlement(
            source, item["attempt"]["S"], int(item["parts"]["N"]), verdict, bool(item["started"]["BOOL"])
        )
    counts = (int(item.get(f"cursor_{name}", {"N": "0"})["N"]) for name in ("part", "line", "frame", "lost"))
    return RunRecord(
        actor,
        number,
        cast("State", item["state"]["S"]),
        item["formed_at"]["S"],
        item["job_run_id"]["S"] if "job_run_id" in item else None,
        settlement,
        Cursor(*counts),
        int(item["members"]["N"]),
        item["running_at"]["S"] if "running_at" in item else None,
        item["job_state"]["S"] if "job_state" in item else "",
        item["details"]["S"] if "details" in item else "",
        msgspec.json.decode(item["usage"]["S"], type=Usage) if "usage" in item else None,
        item["application_id"]["S"] if "application_id" in item else "",
    )
