"""Counts what a heavy actor has beside its queue: pending envelopes in DynamoDB, and job runs that are not closed."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from asya.heavy.aws.pending import Pending
from asya.heavy.aws.run_records import RunRecords
from asya.protocol import names
from asya.protocol.job_runs import run_id


@dataclass(frozen=True)
class HeavyBacklog:
    """The backlog of one actor; false if there is none, as with each light actor.

    Attributes:
        pending: number of envelopes that wait for a job run; above 10,000 only about.
        runs: the ids of the runs whose results are not all routed, oldest first.
    """

    pending: int = 0
    runs: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pending or self.runs)

    def __str__(self) -> str:
        envelopes = "1 pending envelope" if self.pending == 1 else f"{self.pending} pending envelopes"
        runs = "1 open job run" if len(self.runs) == 1 else f"{len(self.runs)} open job runs"
        return f"{envelopes} and {runs}" + (f" ({', '.join(self.runs)})" if self.runs else "")


def heavy_backlog(session: Any, namespace: str, actor: str) -> HeavyBacklog:
    """Return the backlog of an actor.

    An envelope goes from the queue to the pending ones to a run. So the queue is counted before, and the runs last here;
    otherwise an envelope on its way could be missed.

    Args:
        session: a boto3 session in the account and region of the mesh.
        namespace: the namespace with its stage.
        actor: the actor, heavy or not.
    """
    dynamodb = session.client("dynamodb")
    table = names.table_name(namespace, "pending")
    try:
        pending = Pending(dynamodb, session.client("s3"), table=table, bucket="").count(actor)  # counts need no bucket
        records = RunRecords(dynamodb, table=table, retention=timedelta(0))
        # Records expire, and the item of an open run does not.
        numbers = [number for number in records.open_numbers(actor) if records.get(actor, number) is not None]
    except dynamodb.exceptions.ResourceNotFoundException:
        return HeavyBacklog()
    return HeavyBacklog(pending, tuple(run_id(namespace, actor, number) for number in numbers))
