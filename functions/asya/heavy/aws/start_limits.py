"""What limits the starts of job runs, shared by all dispatchers of a mesh: slots, and a rate (`protocol §10`).

An application of the mesh's own has a limit, and EMR Serverless queues further runs in the order of their arrival. The mesh
cannot set the limit of another application, nor the order of the queue. So on such an application, and in a mesh whose actors
have priorities, each run takes a slot before it starts. The slot of an ended run is taken over by the next run
that needs one; so its end frees nothing, and a crash loses no slot. A run that EMR Serverless rejects gives its slot back,
because it might never start. Each taking has a number: a slow dispatcher gives nothing back once another one has taken the slot
of the same run again, and perhaps started it.

A run with a priority that finds no slot is noted as waiting. As long as it asks again, runs of lower priority leave it a slot.

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
# A waiting run asks every 5 to 15 s. One that does not has no claim to a slot any more.
_WAIT_LIFETIME = timedelta(seconds=60)
_SLOTS_KEY = Key("QUOTA#concurrent-runs", "slots")


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A run that waits for a slot, until a time in epoch seconds."""

    priority: int
    until: float


@dataclass(frozen=True, slots=True)
class RunSlot:
    """The slot of a run.

    Attributes:
        take: how often it was taken for this run, this time included.
    """

    run_id: str
    take: int


class RunSlots:
    """The slots in the pending table, item `QUOTA#concurrent-runs` / `slots`.

    Args:
        most: the number of slots; None for an application that has its own limit.
    """

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str, most: int | None) -> None:
        self._table = Table(dynamodb, table)
        self._most = most

    def take(
        self, run_id: str, *, is_active: Callable[[str], bool], now: datetime, priority: int = 0
    ) -> RunSlot | None:
        """Takes a slot for a run, or keeps the one that it has.

        Args:
            is_active: whether the run of a slot may still use the application; asked only when all slots are taken.
            priority: of the run's actor.

        Returns:
            None if all slots are taken or left to runs of higher priority, or other dispatchers won each write.
        """
        if self._most is None:
            return RunSlot(run_id, 0)
        for _ in range(_TRIES):
            item = self._table.get(_SLOTS_KEY)
            holders, takes = _holders(item), _takes(item)
            slot = RunSlot(run_id, takes.get(run_id, 0) + 1)
            if run_id in holders:
                if self._put(holders, takes | {run_id: slot.take}, _waiting(item, None), item):
                    return slot
                continue
            waiting = _waiting(item, now)
            waiting.pop(run_id, None)
            free = self._most - sum(other.priority > priority for other in waiting.values())
            if len(holders) >= free:
                holders = [holder for holder in holders if is_active(holder)]
            if len(holders) < free:
                if self._put([*holders, run_id], takes | {run_id: slot.take}, waiting, item):
                    return slot
                continue
            if not priority:
                return None
            waiting[run_id] = _Waiting(priority, (now + _WAIT_LIFETIME).timestamp())
            if self._put(holders, takes, waiting, item):
                return None
        return None

    def give_back(self, slot: RunSlot) -> None:
        """Gives back the slot of a run that EMR Serverless has not accepted, unless it was taken again; idempotent.

        If other dispatchers win each write, the run keeps its slot until its next try.
        """
        if self._most is None:
            return
        for _ in range(_TRIES):
            item = self._table.get(_SLOTS_KEY)
            holders, takes = _holders(item), _takes(item)
            if slot.run_id not in holders or takes.get(slot.run_id, 0) != slot.take:
                return
            others = [holder for holder in holders if holder != slot.run_id]
            if self._put(others, takes, _waiting(item, None), item):
                return

    def _put(
        self,
        holders: list[str],
        takes: Mapping[str, int],
        waiting: Mapping[str, _Waiting],
        previous: Item,
    ) -> bool:
        slots = {
            "holders": frozenset(holders),
            "takes": {holder: takes.get(holder, 0) for holder in holders},
            "waiting": {
                run_id: {"priority": each.priority, "until": round(each.until, 3)} for run_id, each in waiting.items()
            }
            or None,
            "version": previous.integer("version", 0) + 1,
        }
        change = put(_SLOTS_KEY, slots)
        is_unchanged = (
            change.only_if("version = :version", version=previous["version"]) if previous else change.if_absent()
        )
        return bool(self._table.write(is_unchanged))


def _holders(item: Item) -> list[str]:
    """The ids of the runs with a slot."""
    return sorted(item.texts("holders"))


def _takes(item: Item) -> dict[str, int]:
    """How often each slot was taken for its run."""
    takes = item.map("takes")
    return {run_id: takes.integer(run_id) for run_id in takes}


def _waiting(item: Item, now: datetime | None) -> dict[str, _Waiting]:
    """The runs that wait for a slot; without those that stopped asking, unless `now` is None."""
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

    def wait(self, per_second: float) -> float:
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
        wait = 1 / self._per_second
        for _ in range(_TRIES):
            item = self._table.get(_RATE_KEY)
            bucket = _bucket(item) if item else QuotaBucket(self._burst, now.timestamp())
            filled = bucket.filled(now.timestamp(), self._per_second, self._burst)
            if filled.tokens < 1:
                return filled.wait(self._per_second)
            if self._put(QuotaBucket(filled.tokens - 1, filled.at), item):
                return 0.0
        return wait  # other dispatchers won each write

    def _put(self, bucket: QuotaBucket, previous: Item) -> bool:
        change = put(_RATE_KEY, {"tokens": round(bucket.tokens, 6), "at": round(bucket.at, 6)})
        if not previous:
            return bool(self._table.write(change.if_absent()))
        seen = {"tokens": previous["tokens"], "at": previous["at"]}
        return bool(self._table.write(change.only_if("#tokens = :tokens AND #at = :at", **seen)))


def _bucket(item: Item) -> QuotaBucket:
    return QuotaBucket(item.number("tokens"), item.number("at"))
