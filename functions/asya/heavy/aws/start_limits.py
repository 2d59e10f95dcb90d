"""What limits the starts of job runs, shared by all dispatchers of a mesh: permits, and a rate (`protocol §10`).

An application of the mesh's own has a limit, and EMR Serverless queues further runs in the order of their arrival. The mesh
cannot set the limit of another application, nor the order of the queue. So on such an application, and in a mesh whose actors
have priorities, each run takes a permit before it starts. The permit of an ended run is taken over by the next run
that needs one; so its end frees nothing, and a crash loses no permit. A run that EMR Serverless rejects gives its permit back,
because it might never start. Each taking has a number: a slow dispatcher gives nothing back once another one has taken the permit
of the same run again, and perhaps started it.

A run with a priority that finds no permit is noted as waiting. As long as it asks again, runs of lower priority leave it a permit.

The token bucket for StartJobRun only saves calls: EMR Serverless enforces the quota of the account.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Item, Key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_TRIES = 5
# A waiting run asks every 5 to 15 s. One that does not has no claim to a permit any more.
_WAIT_LIFETIME = timedelta(seconds=60)
_PERMITS_KEY = Key("QUOTA#concurrent-runs", "permits")


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A run that waits for a permit, until a time in epoch seconds."""

    priority: int
    until: float


@dataclass(frozen=True, slots=True)
class RunPermit:
    """The permit of a run.

    Attributes:
        take: how often it was taken for this run, this time included.
    """

    run_id: str
    take: int


class RunPermits:
    """The permits in the pending table, item `QUOTA#concurrent-runs` / `permits`.

    Args:
        most: the number of permits; None for an application that has its own limit.
    """

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str, most: int | None) -> None:
        self._table = Table(dynamodb, table)
        self._most = most

    def take(
        self, run_id: str, *, is_active: Callable[[str], bool], now: datetime, priority: int = 0
    ) -> RunPermit | None:
        """Takes a permit for a run, or keeps the one that it has.

        Args:
            is_active: whether the run of a permit may still use the application; asked only when all permits are taken.
            priority: of the run's actor.

        Returns:
            None if all permits are taken or left to runs of higher priority, or other dispatchers won each write.
        """
        if self._most is None:
            return RunPermit(run_id, 0)
        for _ in range(_TRIES):
            item = self._table.get(_PERMITS_KEY)
            holders, takes = _holders(item), _takes(item)
            permit = RunPermit(run_id, takes.get(run_id, 0) + 1)
            if run_id in holders:
                if self._put(holders, takes | {run_id: permit.take}, _waiting(item, None), item):
                    return permit
                continue
            waiting = _waiting(item, now)
            waiting.pop(run_id, None)
            free = self._most - sum(other.priority > priority for other in waiting.values())
            if len(holders) >= free:
                holders = [holder for holder in holders if is_active(holder)]
            if len(holders) < free:
                if self._put([*holders, run_id], takes | {run_id: permit.take}, waiting, item):
                    return permit
                continue
            if not priority:
                return None
            waiting[run_id] = _Waiting(priority, (now + _WAIT_LIFETIME).timestamp())
            if self._put(holders, takes, waiting, item):
                return None
        return None

    def give_back(self, permit: RunPermit) -> None:
        """Gives back the permit of a run that EMR Serverless has not accepted, unless it was taken again; idempotent.

        If other dispatchers win each write, the run keeps its permit until its next try.
        """
        if self._most is None:
            return
        for _ in range(_TRIES):
            item = self._table.get(_PERMITS_KEY)
            holders, takes = _holders(item), _takes(item)
            if permit.run_id not in holders or takes.get(permit.run_id, 0) != permit.take:
                return
            others = [holder for holder in holders if holder != permit.run_id]
            if self._put(others, takes, _waiting(item, None), item):
                return

    def _put(
        self,
        holders: list[str],
        takes: Mapping[str, int],
        waiting: Mapping[str, _Waiting],
        previous: Item,
    ) -> bool:
        permits = {
            "holders": frozenset(holders),
            "takes": {holder: takes.get(holder, 0) for holder in holders},
            "waiting": {
                run_id: {"priority": each.priority, "until": round(each.until, 3)} for run_id, each in waiting.items()
            }
            or None,
            "version": previous.integer("version", 0) + 1,
        }
        change = put(_PERMITS_KEY, permits)
        is_unchanged = (
            change.only_if("version = :version", version=previous["version"]) if previous else change.if_absent()
        )
        return bool(self._table.write(is_unchanged))


def _holders(item: Item) -> list[str]:
    """The ids of the runs with a permit."""
    return sorted(item.texts("holders"))


def _takes(item: Item) -> dict[str, int]:
    """How often each permit was taken for its run."""
    takes = item.map("takes")
    return {run_id: takes.integer(run_id) for run_id in takes}


def _waiting(item: Item, now: datetime | None) -> dict[str, _Waiting]:
    """The runs that wait for a permit; without those that stopped asking, unless `now` is None."""
    entries = item.map("waiting")
    waiting = {
        run_id: _Waiting(entry.integer("priority"), entry.number("until"))
        for run_id, entry in ((run_id, entries.map(run_id)) for run_id in entries)
    }
    return {run_id: each for run_id, each in waiting.items() if now is None or each.until > now.timestamp()}


_RATE_KEY = Key("QUOTA#start-job-run", "bucket")


@dataclass(frozen=True, slots=True)
class QuotaBucket:
    """The number of tokens at a time (epoch seconds)."""

    tokens: float
    at: float

    def filled(self, now: float, per_second: float, burst: int) -> "QuotaBucket":
        """The bucket at `now`."""
        return QuotaBucket(min(burst, self.tokens + max(0.0, now - self.at) * per_second), max(now, self.at))

    def delay(self, per_second: float) -> float:
        """Seconds until the next token."""
        return max(0.0, (1 - self.tokens) / per_second)


class StartRate:
    """The token bucket in the pending table, item `QUOTA#start-job-run` / `bucket`."""

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str, per_second: float, burst: int) -> None:
        self._table = Table(dynamodb, table)
        self._per_second = per_second
        self._burst = burst

    def take(self, *, now: datetime) -> float:
        """Takes a token; returns 0, or the seconds until the next token if the bucket is empty."""
        delay = 1 / self._per_second
        for _ in range(_TRIES):
            item = self._table.get(_RATE_KEY)
            bucket = _bucket(item) if item else QuotaBucket(self._burst, now.timestamp())
            filled = bucket.filled(now.timestamp(), self._per_second, self._burst)
            if filled.tokens < 1:
                return filled.delay(self._per_second)
            if self._put(QuotaBucket(filled.tokens - 1, filled.at), item):
                return 0.0
        return delay  # other dispatchers won each write

    def _put(self, bucket: QuotaBucket, previous: Item) -> bool:
        change = put(_RATE_KEY, {"tokens": round(bucket.tokens, 6), "at": round(bucket.at, 6)})
        if not previous:
            return bool(self._table.write(change.if_absent()))
        seen = {"tokens": previous["tokens"], "at": previous["at"]}
        return bool(self._table.write(change.only_if("#tokens = :tokens AND #at = :at", **seen)))


def _bucket(item: Item) -> QuotaBucket:
    return QuotaBucket(item.number("tokens"), item.number("at"))
