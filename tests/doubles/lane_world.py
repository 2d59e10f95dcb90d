"""The lanes of one trigger over tables and queues in memory, with processes that die before or after any write.

Messages of `x-triggers` wait in a list and are delivered until all are done; a process that dies leaves its message there.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from unittest import mock

from msgspec import Raw

from asya.capabilities.triggers.aws.queue_senders import build_end_notices
from asya.capabilities.triggers.lambdas.lane_queue import LaneQueue
from asya.capabilities.triggers.lambdas.wiring import build_lane_sweep, build_triggers
from asya.capabilities.triggers.messages import UnusableMessageError
from asya.capabilities.triggers.occurrences import Occurrence
from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.lambdas.environment import RealEnvironment
from asya.protocol.api_errors import ApiError
from asya.protocol.events import EventData, TaskEvent
from asya.protocol.mesh_table import Actor, MeshTable, Tool
from asya.protocol.task import StartedBy
from asya.protocol.times import format_time
from asya.protocol.triggers import Trigger
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.testing.dynamo.queries import new_table
from asya.testing.dynamo.tables import MemoryDynamo
from asya.testing.planned_faults import Death
from asya.testing.services.clients import Bucket, DynamoClient, S3Client
from asya.testing.services.direct import DirectProcess
from asya.testing.services.faults import Fault
from asya.testing.services.process import Process, ProcessCrashed
from asya.testing.services.queues import Message, Queue, Queues, SqsClient
from tests.doubles.envelopes import mesh

START = datetime(2026, 11, 25, 12, tzinfo=UTC)
TRIGGERS = "asya-shop-x-triggers"
_MOST_STEPS = 2000


@dataclass
class Clock(RealEnvironment):
    """A clock that the test moves; nobody sleeps."""

    time: datetime = START

    is_threaded = False

    def now(self) -> datetime:
        """See `Environment`."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """See `Environment`."""
        self.time += timedelta(seconds=seconds)

    def new_span(self) -> str:
        """See `Environment`."""
        return "00000000000000aa"


@dataclass
class Waiting:
    """A message of `x-triggers`.

    Attributes:
        content: the body, or an occurrence that another source has made.
        at: when it arrives.
        sent_at: when it was sent.
    """

    content: bytes | Occurrence
    at: datetime
    sent_at: datetime


@dataclass
class LaneWorld:
    """One mesh with one trigger, `orders`.

    Attributes:
        name: what the mesh calls the trigger; another name after a deployment that has removed `orders`.
        waiting: the messages of `x-triggers`.
        dead: the dead letters of `x-triggers`: body and problem.
        started: the payloads of started tasks by their ids, in the order of the starts.
        overlaps: ids of tasks that started while another one of their lane ran.
        loses_notices: whether notices of ends are lost.
    """

    trigger: Trigger
    clock: Clock = field(default_factory=Clock)
    death: Death = field(default_factory=Death)
    waiting: list[Waiting] = field(default_factory=list)
    dead: list[tuple[str, str]] = field(default_factory=list)
    started: dict[str, Any] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    overlaps: list[str] = field(default_factory=list)
    loses_notices: bool = False
    name: str = "orders"
    tables: MemoryDynamo = field(
        default_factory=lambda: MemoryDynamo(
            {"asya-shop-tasks": new_table("tasks"), "asya-shop-sink": new_table("sink")}
        )
    )

    def __post_init__(self) -> None:
        self.process = DirectProcess()
        self.process.faults.plans.append(self.fault)
        queues = {name: Queue(name, 30.0, None) for name in (TRIGGERS, f"{TRIGGERS}-dlq", "asya-shop-infer")}
        self.clients: dict[str, Any] = {
            "sqs": SqsClient(
                self.process, Queues(self.process.simulation, self, lambda _: None, queues), "AROATRIGGERS"
            ),
            "dynamodb": DynamoClient(self.process, self.tables),
            "s3": S3Client(self.process, Bucket()),
        }

    def fault(self, service: str, what: str) -> Fault:
        """The fault of a call: the death that is planned now."""
        return self.death.plan(service, what)

    @property
    def table(self) -> MeshTable:
        """The table of the mesh."""
        schema: dict[str, object] = {"type": "object", "properties": {"n": {"type": "integer"}}}
        tool = Tool(description="Infers.", route=("infer",), input_schema=schema)
        actors = {"infer": Actor(kind="handler", handler="handlers.infer")}
        return mesh(actors, tools={"infer": tool}, triggers={self.name: self.trigger})

    @contextmanager
    def active(self) -> Iterator[None]:
        """Connect the code to this world."""
        with ExitStack() as stack:
            for name, client in self.clients.items():
                stack.enter_context(mock.patch.object(clients, name, lambda client=client: client))
            yield

    def services(self, function: str) -> Services:
        """The services of a new process."""
        return Services(
            Settings(
                table=self.table,
                actor=function,
                region="eu-west-1",
                heartbeats=True,
                bucket="asya-shop",
                data_uri="s3://asya-shop/data/",
                results_uri="s3://asya-shop/results/",
                queue_url_prefix="https://sqs.eu-west-1.amazonaws.com/123456789012/",
                gateway_url="https://gateway.example",
            ),
            self.clock,
        )

    def lanes(self) -> LaneQueue:
        """The lanes of a new process of `x-triggers`."""
        return build_triggers(self.services("x-triggers")).lanes

    def occur(self, number: int, *, times: int = 1, sent: float | None = None, **payload: Any) -> Occurrence:
        """Let something occur, whose message arrives this many times."""
        occurrence = Occurrence(
            "orders",
            f"order {number}",
            Raw(json.dumps({"n": number, **payload}).encode()),
            StartedBy(kind="trigger", name="orders"),
        )
        sent_at = START + timedelta(seconds=sent if sent is not None else number)
        self.waiting += [Waiting(occurrence, self.clock.time, sent_at) for _ in range(times)]
        return occurrence

    def redrive(self, body: str) -> None:
        """Send a dead letter to `x-triggers` again."""
        self.waiting.append(Waiting(body.encode(), self.clock.time, self.clock.time))

    def end(self, task_id: str, status: Any = "succeeded") -> None:
        """Let a task end, and tell `x-triggers`."""
        with self.active():
            own = self.services("x-reports")
            tasks = StoredTasks(own, build_end_notices(own)).tasks
            at = format_time(self.clock.time)
            event = TaskEvent(id=task_id, status=status, at=at, position=1, data=EventData(actor="infer"))
            self.ended.add(task_id)
            try:
                tasks.report([event], self.clock.time, may_create=False)
            except ProcessCrashed:
                self.death = Death()
                tasks.report([event], self.clock.time, may_create=False)

    def numbers(self) -> list[Any]:
        """The numbers of the occurrences whose tasks have started, in order."""
        return [payload["n"] for payload in self.started.values()]

    def end_all(self, seconds: float = 0.0) -> None:
        """End tasks until none starts any more, and run for some time after each round."""
        while running := set(self.started) - self.ended:
            for task_id in running:
                self.end(task_id)
            self.run(seconds)

    def status(self, task_id: str) -> str:
        """The status in the record of a task; empty without a record."""
        item = self.tables.tables["asya-shop-tasks"].items.get((task_id, "record"))
        return item["status"]["S"] if item else ""

    def run(self, seconds: float = 0.0, *, sweeps: bool = True) -> None:
        """Deliver messages until all that arrive within a time are done; the sweep runs at each minute."""
        until = self.clock.time + timedelta(seconds=seconds)
        for _ in range(_MOST_STEPS):
            arrived = [each for each in self.waiting if each.at <= self.clock.time]
            if arrived:
                self.deliver(arrived[0])
            elif self.clock.time >= until:
                return
            else:
                self._wait(until, sweeps=sweeps)
        raise AssertionError("the messages never end")

    def sweep(self) -> None:
        """Run the sweep of lanes once, in a process of its own."""
        with self.active():
            try:
                build_lane_sweep(self.services("x-task-sweep")).sweep()
            except ProcessCrashed:
                self.death = Death()

    def _wait(self, until: datetime, *, sweeps: bool) -> None:
        minute = self.clock.time.replace(second=0, microsecond=0) + timedelta(minutes=1)
        times = [each.at for each in self.waiting] + [until]
        self.clock.time = max(min(times + ([minute] if sweeps else [])), self.clock.time)
        if sweeps and self.clock.time == minute:
            self.sweep()

    def deliver(self, message: Waiting) -> None:
        """Deliver a message to `x-triggers`; it arrives again later if its process dies."""
        with self.active():
            try:
                lanes = self.lanes()
                if isinstance(message.content, bytes):
                    assert lanes.take(message.content)
                else:
                    lanes.enter(message.content, format_time(message.sent_at))
            except UnusableMessageError as error:
                self.dead.append((str(message.content), str(error)))
            except ProcessCrashed:
                self.death = Death()
                message.at = self.clock.time + timedelta(seconds=30)
                return
            except ApiError as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                message.at = self.clock.time + timedelta(seconds=10)
                return
        self.waiting.remove(message)

    # --- QueueObserver ---------------------------------------------------------------------------------------------

    def accepted(self, message: Message, sender: Process | None) -> None:
        """See `QueueObserver`."""
        if message.queue != TRIGGERS:
            self.start(json.loads(message.body))
        elif not (self.loses_notices and "ended" in message.body):
            at = self.clock.time + timedelta(seconds=message.delay)
            self.waiting.append(Waiting(message.body.encode(), at, self.clock.time))

    def given_up(self, message: Message, sender: Process | None) -> None:
        """See `QueueObserver`."""
        self.dead.append((message.body, message.attributes["asya-problem"]["StringValue"]))

    def deleted(self, message: Message, by: Process | None) -> None:
        """See `QueueObserver`."""

    def dead_lettered(self, message: Message) -> None:
        """See `QueueObserver`."""

    def moved(self, message: Message) -> None:
        """See `QueueObserver`."""

    def start(self, envelope: Any) -> None:
        """Take the first message of a task."""
        task_id = envelope["id"]
        if task_id not in self.started:
            lane = envelope["payload"].get("lane")
            running = [
                other
                for other, payload in self.started.items()
                if payload.get("lane") == lane and self.status(other) not in ("succeeded", "failed", "canceled")
            ]
            self.overlaps += [task_id] if running else []
            self.started[task_id] = envelope["payload"]
