"""A backfill starts each slot once, whatever process dies at whatever point, and however many processes work at it."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from asya.capabilities.triggers.aws.backfills import Backfills, StoredBackfill
from asya.capabilities.triggers.lambdas.backfill_runner import BackfillRunner
from asya.capabilities.triggers.lambdas.sweeps import BackfillSweep
from asya.capabilities.triggers.occurrences import Occurrence
from asya.capabilities.triggers.operators.answers import BackfillRequest
from asya.capabilities.triggers.operators.backfill import Backfill, canceled, resumed
from asya.capabilities.triggers.operators.operator_messages import read_backfill
from asya.capabilities.triggers.operators.requests import new_backfill
from asya.protocol.api_errors import ApiError
from asya.protocol.hops import HopRecord
from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.states import TaskStatus
from asya.protocol.task import TaskRecord
from asya.protocol.triggers import Trigger
from asya.tasks.aws.task_store import StoredRecord, TaskStoreError, UnreadableRecordError
from asya.testing.dynamo.queries import new_table
from asya.testing.dynamo.tables import MemoryDynamo
from asya.testing.services.direct import MemorySqs

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
AT = "2026-11-25T12:00:00.000000Z"
NIGHTLY = Trigger(route=("greet",), cron="0 2 * * *", timezone="Europe/Oslo", payload={"d": "{date}"})
MESH = MeshTable(namespace="shop", actors={"greet": Actor(kind="handler")}, triggers={"nightly": NIGHTLY})
QUEUE = "asya-shop-x-triggers"


class Died(BaseException):
    """The process has died; no cleanup runs."""


@dataclass
class World:
    """The table, the tasks, and the queue of a mesh; each call of them may be the last one of a process.

    Attributes:
        dies_at: the numbers of the calls at which the process dies, before or after the call.
        unreadable: the ids of the records that a later version has written.
        sent: how many first messages the task of an id has got.
    """

    dies_at: set[tuple[int, str]] = field(default_factory=set)
    calls: int = 0
    records_by_id: dict[str, TaskRecord] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    sent: Counter[str] = field(default_factory=Counter)
    payloads: dict[str, bytes] = field(default_factory=dict)
    most_running: int = 0
    meanwhile: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        tables = MemoryDynamo({"asya-shop-tasks": new_table("tasks")})
        self.backfills = Backfills(tables, "asya-shop-tasks", 86400)  # type: ignore[arg-type]
        log = SimpleNamespace(info=_ignore, warning=_ignore)
        self.services: Any = SimpleNamespace(
            settings=SimpleNamespace(table=MESH), telemetry=SimpleNamespace(log=log), now=lambda: NOW
        )

    def begin(self, **fields: Any) -> str:
        request = BackfillRequest(**{"trigger": "nightly", "from_": "2025-01-01", "to": "2025-12-31"} | fields)
        backfill = new_backfill(request, NIGHTLY, "b1", "AIDA", NOW)
        assert self.backfills.create(backfill, NOW)
        assert not self.backfills.create(backfill, NOW)
        return backfill.id

    def state(self) -> Backfill:
        stored = self.backfills.read("b1")
        assert stored is not None
        return stored.backfill

    def advance(self) -> None:
        """Let one process move the backfill on; it may die."""
        runner = BackfillRunner(self.services, _Fragile(self, self.backfills), _Fragile(self, self))  # type: ignore[arg-type]
        with suppress(Died):
            runner.advance("b1", lambda occurrence: self.fragile(lambda: self.start(occurrence)))

    def start(self, occurrence: Occurrence) -> None:
        """Start a task once per key, as `TaskStarter.start_once` does."""
        if occurrence.task_id in self.records_by_id:
            return
        self.add(occurrence.task_id, "pending", occurrence)
        self.sent[occurrence.task_id] += 1
        self.payloads[occurrence.task_id] = bytes(occurrence.payload)
        self.most_running = max(self.most_running, len(self.running()))

    def add(self, task_id: str, status: TaskStatus, occurrence: Occurrence | None = None) -> None:
        self.records_by_id[task_id] = TaskRecord(
            id=task_id,
            status=status,
            created_at=AT,
            updated_at=AT,
            started_by=occurrence.started_by if occurrence else None,
        )

    def running(self) -> list[str]:
        return [each.id for each in self.records_by_id.values() if not each.is_terminal]

    def records(self, ids: list[str], _now: datetime, *, consistent: bool) -> dict[str, StoredRecord]:
        """See `TaskStore`."""
        assert consistent
        return {
            each: StoredRecord(self.records_by_id[each], 1)
            for each in ids
            if each in self.records_by_id and each not in self.unreadable
        }

    def load(self, task_id: str, _now: datetime) -> tuple[TaskRecord, Iterator[HopRecord]] | None:
        """See `TaskStore`."""
        if task_id in self.unreadable:
            raise UnreadableRecordError(task_id, "a later version", None, None)
        return (self.records_by_id[task_id], iter(())) if task_id in self.records_by_id else None

    def work(self, random: Random, status: TaskStatus = "succeeded") -> None:
        """End tasks in any order, each with a notice, until the backfill has ended; the sweep runs now and then."""
        for _ in range(2000):
            if not self.state().is_open:
                return
            for task_id in random.sample(self.running(), min(len(self.running()), random.randint(1, 4))):
                self.add(task_id, status)
                self.advance()
            self.advance()
        raise AssertionError(f"the backfill has not ended: {self.state()}")

    def fragile(self, call: Callable[[], Any]) -> Any:
        self.calls += 1
        number = self.calls
        if (number, "before") in self.dies_at:
            raise Died
        result = call()
        if (number, "after") in self.dies_at:
            raise Died
        return result


@dataclass
class _Fragile:
    """A service whose calls may be the last ones of the process."""

    world: World
    service: Any

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            if name == "replace" and self.world.meanwhile is not None:
                meanwhile, self.world.meanwhile = self.world.meanwhile, None
                meanwhile()
            return self.world.fragile(lambda: getattr(self.service, name)(*args, **options))

        return call


def _ignore(*_: object, **__: object) -> None:
    """Log nothing."""


@pytest.mark.rule("16.backfill.once", "16.backfill.state", "16.backfill.at-once")
def test_16_a_backfill_of_a_year_killed_twice_starts_365_tasks_each_once() -> None:
    """At most ten at a time, each with the payload of its day."""
    world = World(dies_at={(200, "after"), (1111, "before")})
    world.begin(at_once=10)
    world.advance()
    world.work(Random(0))
    state = world.state()
    assert (state.state, state.succeeded, state.failed, state.before) == ("done", 365, 0, 0)
    assert len(world.sent) == 365
    assert set(world.sent.values()) == {1}
    assert len(set(world.payloads.values())) == 365
    assert world.most_running == 10


@pytest.mark.rule("16.backfill.state")
@pytest.mark.parametrize("when", ["before", "after"])
def test_16_a_death_at_any_call_starts_no_slot_twice_and_leaves_none_out(when: str) -> None:
    """Of the table, of the tasks and of the starts."""
    number, is_over = 0, False
    while not is_over:
        number += 1
        world = World(dies_at={(number, when)})
        world.begin(to="2025-01-05", at_once=2)
        world.advance()
        world.work(Random(number))
        is_over = world.calls < number
        state = world.state()
        assert (state.state, state.succeeded, len(world.sent)) == ("done", 5, 5), number
        assert set(world.sent.values()) == {1}
        assert world.most_running <= 2
    assert number > 30


@pytest.mark.rule("16.backfill.state")
def test_16_of_two_processes_at_once_one_writes() -> None:
    """The other one takes the next step with what it reads then."""
    world = World()
    world.begin(to="2025-01-20", at_once=3)
    world.meanwhile = lambda: BackfillRunner(world.services, world.backfills, world).advance("b1", world.start)  # type: ignore[arg-type]
    world.advance()
    assert (len(world.sent), world.most_running) == (3, 3)
    world.work(Random(1))
    assert (world.state().succeeded, set(world.sent.values()), world.most_running) == (20, {1}, 3)


@pytest.mark.rule("16.backfill.once")
def test_16_slots_that_have_a_task_are_passed_at_once() -> None:
    """However many they are."""
    world = World()
    world.begin(at_once=2)
    backfill = world.state()
    for slot in backfill.following(300):
        world.add(backfill.task_id(slot), "succeeded")
    world.advance()
    assert (world.state().before, len(world.sent)) == (300, 2)
    world.work(Random(2))
    assert (world.state().succeeded, len(world.sent)) == (65, 65)


@pytest.mark.rule("16.backfill.stop")
def test_16_it_stops_at_failures() -> None:
    """No slot is noted after that."""
    world = World()
    world.begin(at_once=2, stop_after=5)
    world.advance()
    world.work(Random(3), "failed")
    state = world.state()
    assert state.state == "stopped"
    assert 5 <= state.failed <= 6
    world.advance()
    assert len(world.sent) == state.failed


@pytest.mark.rule("16.backfill.stop")
def test_16_a_stopped_backfill_starts_no_slot_that_it_has_noted() -> None:
    """The queue of the second task was out of order until the first task had failed."""
    world = World()
    world.begin(at_once=2, stop_after=1)

    def start(occurrence: Occurrence) -> None:
        if world.sent:
            raise ApiError(503, "not_sent", "its queue rejected the message")
        world.start(occurrence)

    runner = BackfillRunner(world.services, world.backfills, world)  # type: ignore[arg-type]
    runner.advance("b1", start)
    world.add(*world.sent, status="failed")
    for _ in range(3):
        world.advance()
    assert (world.state().state, len(world.sent)) == ("stopped", 1)
    stored = world.backfills.read("b1")
    assert stored is not None
    assert world.backfills.replace(stored, resumed(stored.backfill, NOW), NOW) is not None
    world.advance()
    assert [slot[:10] for slot in (each.slot for each in world.state().noted)] == ["2025-01-02", "2025-01-03"]
    assert len(world.sent) == 3


@pytest.mark.rule("16.backfill.stop", "16.backfill.state")
def test_16_a_slot_that_cannot_start_now_starts_later_and_one_that_never_can_is_a_failure() -> None:
    """A refusal for good frees the place for the next slot in the same step."""
    world = World()
    world.begin(to="2025-01-04", at_once=1)
    errors: list[Exception] = [TaskStoreError("no table"), ApiError(409, "idempotency_in_progress", "at work")]

    def start(occurrence: Occurrence) -> None:
        if errors:
            raise errors.pop()
        if b"2025-01-01" in bytes(occurrence.payload):
            raise ApiError(413, "too_large", "2 MB")
        world.start(occurrence)

    runner = BackfillRunner(world.services, world.backfills, world)  # type: ignore[arg-type]
    for _ in range(2):
        runner.advance("b1", start)
        assert world.state().failed == 0
    runner.advance("b1", start)
    state = world.state()
    assert ([each.problem for each in state.failures], len(world.sent)) == (["too_large: 2 MB"], 1)


@pytest.mark.rule("16.backfill.state", "16.backfill.at-once")
def test_16_a_record_that_cannot_be_read_counts_as_running() -> None:
    """A later version has written it, and this function follows in a moment. One that has expired is a failure."""
    world = World()
    world.begin(to="2025-01-04", at_once=1)
    world.advance()
    world.unreadable.update(world.records_by_id)
    with pytest.raises(UnreadableRecordError):
        world.advance()
    assert (world.state().failed, len(world.sent)) == (0, 1)
    world.unreadable.clear()
    world.records_by_id.clear()
    world.advance()
    assert [each.problem for each in world.state().failures] == ["the record of its task has expired"]
    assert len(world.sent) == 2


@pytest.mark.rule("16.backfill.cancel")
def test_16_a_canceled_backfill_ends_with_its_tasks() -> None:
    """Its state is kept as long as tasks are."""
    world = World()
    world.begin(at_once=3)
    world.advance()
    stored = world.backfills.read("b1")
    assert stored is not None
    assert world.backfills.replace(stored, canceled(stored.backfill, NOW), NOW) is not None
    assert world.backfills.replace(stored, stored.backfill, NOW) is None
    world.work(Random(4), "canceled")
    assert (world.state().state, len(world.sent)) == ("canceled", 3)
    assert [each.id for each in world.backfills.read_all(NOW)] == ["b1"]
    assert world.backfills.read_all(datetime(2026, 11, 27, tzinfo=UTC)) == []


@pytest.mark.rule("16.backfill.at-once")
def test_16_the_sweep_names_open_backfills() -> None:
    """A mesh without schedules reads nothing."""
    world, sqs = World(), MemorySqs()
    world.begin(to="2025-01-02")

    def sweep() -> list[str | None]:
        sqs.sent.clear()
        BackfillSweep(world.services, world.backfills, sqs, f"https://sqs/1/{QUEUE}").sweep()  # type: ignore[arg-type]
        return [read_backfill(sent.body.encode()) for sent in sqs.sent[QUEUE]]

    assert sweep() == ["b1"]
    world.advance()
    world.work(Random(5))
    assert sweep() == []
    world.services.settings.table = MeshTable(namespace="shop", actors={})
    broken = BackfillSweep(world.services, None, sqs, "")  # type: ignore[arg-type]
    broken.sweep()


def test_16_an_unknown_backfill_changes_nothing() -> None:
    """A message may outlive the state."""
    world = World()
    world.advance()
    assert world.sent == Counter()
    assert isinstance(world.backfills.read("b1"), StoredBackfill | None)
