"""protocol §13.cancel: whatever the order of a cancellation and of the end of its envelope is, all say the same word."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import Raw

from asya.capabilities.cancels.lambdas.task_cancels import CanceledTask, build_task_cancels
from asya.ends.aws.results import ResultIndex, Results
from asya.ends.lambdas.wiring import build_sink, build_sump
from asya.ends.results import row_of
from asya.function.aws import clients
from asya.function.lambdas.environment import RealEnvironment
from asya.protocol.events import TaskEvent
from asya.protocol.mesh_table import Actor, Sink
from asya.protocol.task import TaskRecord
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.aws.tasks import Tasks
from tests.doubles.dynamo import create_tasks_table
from tests.doubles.envelopes import mesh
from tests.doubles.interleaving import Program, SteppedClient, crashes, orders, run, text
from tests.doubles.mesh_world import MeshWorld, batch_failures, mesh_world, sqs_event
from tests.doubles.sink import ended
from tests.unit.memory_tables import MemoryTables

TABLE = mesh(
    {name: Actor(kind="handler", handler="h.f") for name in ("hook", "infer")}, sink=Sink(hooks=("hook",), index=True)
)
BUILD = {"x-sink": build_sink, "x-sump": build_sump}
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
BORN = "2026-11-20T11:59:00.000000Z"


class Clock(RealEnvironment):
    """A clock that goes on by a millisecond with each look, without threads."""

    is_threaded = False

    def __init__(self) -> None:
        self.moment = NOW

    def now(self) -> datetime:
        self.moment += timedelta(milliseconds=1)
        return self.moment


@dataclass
class Race:
    """A task whose envelope has ended, and waits at x-sink or x-sump while a call cancels the task."""

    world: MeshWorld
    tables: MemoryTables
    clock: Clock = field(default_factory=Clock)
    recorded: int = 0

    def begin(self) -> None:
        """Forget everything but one running task."""
        for table in self.tables.tables.values():
            table.items.clear()
        self.world.s3.objects.clear()
        self.world.s3.metadata.clear()
        self.world.sqs.sent.clear()
        self.world.gateway.events.clear()
        self.recorded = 0
        self.tasks().create(TaskRecord(id="env-1", status="running", created_at=BORN, updated_at=BORN), NOW)

    def tasks(self) -> Tasks:
        """The tasks as a new process sees them."""
        store = DynamoTaskStore(clients.dynamodb(), "asya-shop-tasks", 10**6, lambda _: None)
        return Tasks(store, lambda _: None, threaded=False)

    def cancel(self) -> CanceledTask | None:
        """`DELETE`."""
        own = replace(self.world.services("x-gateway-api", TABLE), environment=self.clock)
        cancels = build_task_cancels(own, StoredTasks(own), lambda delivery: delivery)
        return cancels.cancel("env-1", self.clock.now(), "AIDAALICE")

    def end(self, actor: str, phase: str) -> list[str]:
        """x-sink or x-sump gets the envelope; returns the ids of the messages that stay on the queue."""
        services = replace(self.world.services(actor, TABLE), environment=self.clock)
        return batch_failures(BUILD[actor](services).process(sqs_event(ended(phase))))

    def record(self) -> None:
        """x-reports writes what was reported since it came last, and the rows of ends."""
        events = [event for event in self.world.gateway.events[self.recorded :] if isinstance(event, TaskEvent)]
        self.recorded = len(self.world.gateway.events)
        settings = self.world.services("x-reports", TABLE).settings
        index = ResultIndex(Results(clients.results_s3(settings.table.sink.endpoint), settings.results_uri))
        for event in events:
            if isinstance(event.row, Raw):
                index.add(row_of(event.row))
        index.flush()
        self.tasks().report(events, self.clock.now(), may_create=True)

    def settle(self, actor: str, phase: str) -> None:
        """Deliver everything, and deliver it twice."""
        for _ in range(2):
            assert self.end(actor, phase) == []
            for body in {message.body for message in self.world.messages("x-sump")}:
                services = replace(self.world.services("x-sump", TABLE), environment=self.clock)
                assert batch_failures(build_sump(services).process(sqs_event(body))) == []
            self.recorded = 0
            self.record()

    def words(self) -> dict[str, set[str]]:
        """What is said about the end, and where."""
        claim = self.tables.tables["asya-shop-sink"].items["env-1", "claim"]
        record = self.tables.tables["asya-shop-tasks"].items["env-1", "record"]
        keys = [key.removeprefix("results/") for key in self.world.s3.keys("results/")]
        ends = [key for key in keys if key.endswith("/env-1.json")]
        rows = [
            json.loads(line)
            for key in keys
            if key.startswith("index/")
            for line in self.world.s3.content(f"results/{key}").decode().splitlines()
        ]
        return {
            "claim": {claim["phase"]["S"]},
            "record": {record["status"]["S"]},
            "object": {"failed" if key.startswith("sump/") else key.partition("/")[0] for key in ends},
            "row": {row["phase"] for row in rows},
        }


@pytest.fixture(scope="module")
def race() -> Iterator[Race]:
    """The race, with a step at each call that another process can see."""
    with pytest.MonkeyPatch.context() as monkeypatch, mesh_world(monkeypatch) as world:
        tables = MemoryTables()
        for kind in ("tasks", "sink"):
            create_tasks_table(tables, f"asya-shop-{kind}")  # type: ignore[arg-type]
        dynamodb, s3 = SteppedClient(tables, is_shared), SteppedClient(world.s3, is_shared)
        monkeypatch.setattr(clients, "dynamodb", lambda: dynamodb)
        monkeypatch.setattr(clients, "s3", lambda: s3)
        monkeypatch.setattr(clients, "results_s3", lambda _: s3)
        yield Race(world, tables)


def is_shared(action: str, request: dict[str, Any]) -> bool:
    """Whether a call reads or writes a claim, writes the record, or writes the object of an end."""
    is_claim = request.get("TableName") == "asya-shop-sink" and action in ("get_item", "update_item")
    is_record = action == "put_item" and request["Item"]["sk"]["S"] == "record"
    is_record |= action == "transact_write_items"
    return is_claim or is_record or action == "put_object"


def steps_of(race: Race, actor: str, phase: str) -> list[int]:
    """How many steps a cancellation and an end have at most."""
    race.begin()
    programs = [Program(race.cancel), Program(lambda: race.end(actor, phase))]
    run(programs, [1] * 20)
    race.begin()
    others = [Program(race.cancel), Program(lambda: race.end(actor, phase))]
    run(others, [0] * 20)
    return [max(pair[0].steps, pair[1].steps) for pair in zip(programs, others, strict=True)]


@pytest.mark.slow
@pytest.mark.rule("13.cancel", "13.cancel.claimed", "13.cancel.ended", "11.sink.canceled")
@pytest.mark.parametrize(("actor", "phase"), [("x-sink", "succeeded"), ("x-sink", "failed"), ("x-sump", "failed")])
@pytest.mark.parametrize("is_repeated", [False, True])
def test_record_claim_object_row_and_hook_say_the_same_in_each_order_with_each_crash(
    race: Race, actor: str, phase: str, is_repeated: bool
) -> None:
    counts = steps_of(race, actor, phase)
    ran = set()
    for order in orders(counts):
        for number, crash in ((0, each) for each in crashes(counts[0])):
            ran.add(check(race, actor, phase, order, {number: crash}, is_repeated=is_repeated))
        # The caller repeats its own call, so these are the same whether it may or not.
        for crash in [] if is_repeated else list(crashes(counts[1]))[1:]:
            ran.add(check(race, actor, phase, order, {1: crash}, is_repeated=is_repeated))
    assert ran == {phase, "canceled"}


def check(
    race: Race,
    actor: str,
    phase: str,
    order: tuple[int, ...],
    crash: dict[int, tuple[int, str] | None],
    *,
    is_repeated: bool,
) -> str:
    """Run one order, deliver everything, and compare the words; returns the word.

    Args:
        is_repeated: whether the caller repeats a call that crashed; otherwise reports arrive before everything else.
    """
    race.begin()
    canceling = Program(race.cancel, crash.get(0))
    ending = Program(lambda: (race.end(actor, phase), race.record()), crash.get(1))
    run([canceling, ending], order)
    answers = [canceling.answer]
    if is_repeated:
        answers.append(race.cancel())
    race.settle(actor, phase)
    words = race.words()
    (word,) = words["claim"]
    where = f"{text(order)}, crash {crash}: {words}, answers {answers}"
    assert all(said == {word} for said in words.values()), where
    hooks = [sent.envelope.parent_id for sent in race.world.messages("hook")]
    assert bool(hooks) == (word != "canceled" and actor == "x-sink"), where
    assert all(answer.status == word for answer in answers if answer is not None), where
    return word
