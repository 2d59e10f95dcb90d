"""The lanes of one trigger over tables and queues in memory, with processes that die before or after any write.

Messages of `x-triggers` wait in a list and are delivered until all are done; a process that dies leaves its message there.
"""

import json
from collections.abc import Callable, Iterator, Mapping
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
from asya.testing.services.direct import MemoryS3
from tests.doubles.envelopes import mesh

START = datetime(2026, 11, 25, 12, tzinfo=UTC)
TRIGGERS = "asya-shop-x-triggers"
_WRITES = ("put_item", "update_item", "delete_item", "transact_write_items", "send_message", "send_message_batch")
_MOST_STEPS = 2000


class ProcessDied(BaseException):
    """The process has died at a write."""


@dataclass
class Death:
    """When a process dies: before or after the n-th write from now on; never for 0."""

    at: int = 0
    after: bool = False
    count: int = 0

    def call(self, do: Callable[[], Any]) -> Any:
        """Do a write, and die there if its time has come."""
        self.count += 1
        dies = self.count == self.at
        if dies and not self.after:
            raise ProcessDied
        answer = do()
        if dies:
            raise ProcessDied
        return answer


class _Mortal:
    """A client whose writes may be the end of the process."""

    def __init__(self, client: Any, death: Death) -> None:
        self._client, self._death = client, death

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name not in _WRITES:
            return call
        return lambda **request: self._death.call(lambda: call(**request))


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
    s3: MemoryS3 = field(default_factory=MemoryS3)

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
            for name, client in (("sqs", self), ("dynamodb", self.tables), ("s3", self.s3)):
                stack.enter_context(mock.patch.object(clients, name, lambda client=client: _Mortal(client, self.death)))
            yield

    def services(self, function: str) -> Services:
        """The services of a new process."""
        return Services(
            Settings(
                table=self.table,
                actor=function,
                region="eu-west-1",
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
            except ProcessDied:
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
                self._deliver(arrived[0])
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
            except ProcessDied:
                self.death = Death()

    def _wait(self, until: datetime, *, sweeps: bool) -> None:
        minute = self.clock.time.replace(second=0, microsecond=0) + timedelta(minutes=1)
        times = [each.at for each in self.waiting] + [until]
        self.clock.time = max(min(times + ([minute] if sweeps else [])), self.clock.time)
        if sweeps and self.clock.time == minute:
            self.sweep()

    def _deliver(self, message: Waiting) -> None:
        with self.active():
            try:
                lanes = self.lanes()
                if isinstance(message.content, bytes):
                    assert lanes.take(message.content)
                else:
                    lanes.enter(message.content, format_time(message.sent_at))
            except UnusableMessageError as error:
                self.dead.append((str(message.content), str(error)))
            except ProcessDied:
                self.death = Death()
                message.at = self.clock.time + timedelta(seconds=30)
                return
            except ApiError as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                message.at = self.clock.time + timedelta(seconds=10)
                return
        self.waiting.remove(message)

    # The calls of SQS.

    def send_message(
        self,
        *,
        QueueUrl: str,  # noqa: N803
        MessageBody: str,  # noqa: N803
        DelaySeconds: int = 0,  # noqa: N803
        MessageAttributes: Mapping[str, Any] | None = None,  # noqa: N803
        MessageGroupId: str | None = None,  # noqa: N803
    ) -> dict[str, Any]:
        """Take a message."""
        queue = QueueUrl.rpartition("/")[2]
        assert 0 <= DelaySeconds <= 900
        if queue == f"{TRIGGERS}-dlq":
            assert MessageAttributes is not None
            self.dead.append((MessageBody, MessageAttributes["asya-problem"]["StringValue"]))
        elif queue == TRIGGERS:
            if not (self.loses_notices and "ended" in MessageBody):
                at = self.clock.time + timedelta(seconds=DelaySeconds)
                self.waiting.append(Waiting(MessageBody.encode(), at, self.clock.time))
        else:
            self._start(json.loads(MessageBody))
        return {"MessageId": "m"}

    def send_message_batch(self, *, QueueUrl: str, Entries: Any) -> dict[str, Any]:  # noqa: N803
        """Take messages."""
        for entry in Entries:
            self.send_message(QueueUrl=QueueUrl, MessageBody=entry["MessageBody"])
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    def _start(self, envelope: Any) -> None:
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
