"""Runs a mesh with a fan-out in one process: real entry points, fake queues and tables, messages in any order.

A schedule of crashes ends the process before or after any call to AWS. Unacknowledged messages are then redelivered.
"""

import dataclasses
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from asya.capabilities.fan_in.lambdas.wiring import build_fan_in, build_sweep
from asya.ends.lambdas.wiring import build_end_actor, build_sink, build_sump
from asya.function.aws import clients
from asya.function.lambdas.environment import RealEnvironment
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol.mesh_table import Actor, FanIn, MeshTable
from asya.sidecar.lambdas.services import Services
from tests.doubles.mesh_world import MeshWorld, sqs_event

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PREFIX = "asya-shop-"
HANDLERS = "tests.doubles.fan_handlers"


class ProcessCrash(BaseException):
    """Ends the process, as a crash does."""


class Clock(RealEnvironment):
    """A clock that only the test advances, without threads."""

    is_threaded = False

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 20, 12, tzinfo=UTC)

    def now(self) -> datetime:
        self.moment += timedelta(microseconds=1)
        return self.moment


@dataclass
class CrashSchedule:
    """The calls to AWS, by number, at which the process crashes: `before` or `after` the call takes effect."""

    at: dict[int, str] = field(default_factory=dict)
    calls: int = 0

    def around(self, call: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """Make a call, and crash if the schedule says so."""
        self.calls += 1
        when = self.at.get(self.calls)
        if when == "before":
            raise ProcessCrash
        answer = call(*args, **more)
        if when == "after":
            raise ProcessCrash
        return answer


class CrashingClient:
    """An AWS client whose calls follow a schedule of crashes."""

    _WATCHED = ("put_item", "update_item", "get_item", "send_message_batch", "put_object")

    def __init__(self, client: Any, crashes: CrashSchedule) -> None:
        self._client = client
        self._deaths = crashes

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name not in self._WATCHED:
            return call
        return lambda *args, **more: self._deaths.around(call, *args, **more)


@dataclass
class QueuedMessage:
    """A message on a queue, with its actor and the time from which it is visible."""

    actor: str
    body: str
    due: datetime
    receives: int = 0


def fan_table(rule: FanIn | None = None, **actors: Actor) -> MeshTable:
    """The route split → score → post, with x-fan-in and a second fan-in actor, gather."""
    known = {
        name: Actor(kind="handler", handler=f"{HANDLERS}.{name}", timeout=60.0) for name in ("split", "score", "post")
    }
    sets = {name: Actor(kind="fan_in", fan_in=rule or FanIn()) for name in ("x-fan-in", "gather")}
    crew = {name: Actor(kind="crew") for name in ("x-sink", "x-sump")}
    return MeshTable(namespace="shop", actors={**known, **sets, **crew, **actors})


@dataclass
class FanMesh:
    """A running mesh.

    Attributes:
        rng: chooses the next message.
        duplicates: the share of messages that are delivered again.
        is_lost: whether a sent message is dropped.
    """

    world: MeshWorld
    dynamodb: "DynamoDBClient"
    table: MeshTable
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    duplicates: float = 0.0
    crashes: CrashSchedule = field(default_factory=CrashSchedule)
    clock: Clock = field(default_factory=Clock)
    queued: list[QueuedMessage] = field(default_factory=list)
    collected_counts: dict[str, int] = field(default_factory=dict)
    is_lost: Callable[[QueuedMessage], bool] = lambda message: False

    def __post_init__(self) -> None:
        mortal = (
            CrashingClient(self.dynamodb, self.crashes),
            CrashingClient(self.world.sqs, self.crashes),
            CrashingClient(self.world.s3, self.crashes),
        )
        for name, client in zip(("dynamodb", "sqs", "s3"), mortal, strict=True):
            self.world.monkeypatch.setattr(clients, name, lambda client=client: client)

    def send(self, actor: str, body: bytes | str) -> None:
        """Send a message to an actor."""
        text = body if isinstance(body, str) else body.decode()
        self.queued.append(QueuedMessage(actor, text, self.clock.moment))

    def start(
        self,
        payload: Any,
        *,
        envelope_id: str = "env-1",
        ahead: tuple[str, ...] = ("x-fan-in", "post"),
        deadline_at: str | None = None,
    ) -> None:
        """Start a task at split."""
        status: dict[str, Any] = {"phase": "pending", "actor": "split", "attempt": 1, "max_attempts": 1}
        if deadline_at is not None:
            status["deadline_at"] = deadline_at
        route = {"prev": [], "curr": "split", "next": list(ahead)}
        self.send("split", json.dumps({"id": envelope_id, "route": route, "status": status, "payload": payload}))

    def run(self, *, until: timedelta = timedelta(0)) -> None:
        """Process all messages; the clock advances to delayed ones, but at most by `until`."""
        last = self.clock.moment + until
        for _ in range(2000):
            self._gather()
            due = [message for message in self.queued if message.due <= self.clock.moment]
            if not due:
                later = min((message.due for message in self.queued), default=None)
                if later is None or later > last:
                    self.clock.moment = max(self.clock.moment, last)
                    return
                self.clock.moment = later
                continue
            self._deliver(self.rng.choice(due))
        raise AssertionError(f"the mesh does not come to rest: {self.queued}")

    def sweep(self) -> None:
        """Run the sweep once."""
        build_sweep(self._services("x-fan-in-sweep")).sweep()

    def process(self, actor: str, *bodies: bytes | str) -> list[str]:
        """Process one batch at once; returns the ids of the messages that stay on the queue."""
        answer = self.function(actor)(sqs_event(*bodies))
        return [item["itemIdentifier"] for item in answer["batchItemFailures"]]

    def result(self, envelope_id: str = "env-1", phase: str = "succeeded") -> Any:
        """The envelope that x-sink stored."""
        return json.loads(self.world.s3.content(f"results/{phase}/{envelope_id}.json"))

    @property
    def ends(self) -> list[str]:
        """The keys of the ends that x-sink wrote, such as `succeeded/env-1.json`."""
        return [key for key in self._results if not key.startswith(("sump/", "superseded/"))]

    @property
    def superseded(self) -> list[str]:
        """The keys of what came too late, such as `superseded/env-1/0/2-succeeded-….json`."""
        return [key for key in self._results if key.startswith("superseded/")]

    @property
    def _results(self) -> list[str]:
        return [key.removeprefix("results/") for key in self.world.s3.keys("results/")]

    def merged(self, envelope_id: str = "env-1", actor: str = "post") -> set[str]:
        """The distinct messages with an envelope at the actor after the fan-in."""
        bodies = [message.body for message in self.world.messages(actor)]
        return {body for body in bodies if json.loads(body)["id"] == envelope_id}

    def open_sets(self) -> int:
        """The number of open sets."""
        items = self.dynamodb.scan(TableName="asya-shop-fan-in")["Items"]
        return sum("open_in" in item for item in items)

    def _gather(self) -> None:
        """Queue the messages sent since the last call."""
        for queue, messages in self.world.sqs.sent.items():
            actor = queue.removeprefix(PREFIX)
            if actor.endswith("-dlq"):
                continue  # a message that was delivered too often; this mesh has no function that reads dead letters
            for message in messages[self.collected_counts.get(queue, 0) :]:
                due = self.clock.moment + timedelta(seconds=message.delay)
                queued = QueuedMessage(actor, message.body, due)
                if not self.is_lost(queued):
                    self.queued.append(queued)
            self.collected_counts[queue] = len(messages)

    def _deliver(self, message: QueuedMessage) -> None:
        message.receives += 1
        assert message.receives < 12, f"comes again and again: {message}"
        function = self.function(message.actor)
        try:
            answer: Mapping[str, Any] = function(sqs_event(message.body, receive_counts={0: message.receives}))
        except ProcessCrash:
            answer = {"batchItemFailures": [{}]}
        if answer["batchItemFailures"]:
            message.due = self.clock.moment + timedelta(seconds=5 * message.receives)
        elif self.rng.random() >= self.duplicates:
            self.queued.remove(message)

    def function(self, actor: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
        """The entry point of an actor, newly built for each batch, as after a cold start."""
        found, kind = self._services(actor), self.table.actors[actor].kind
        by_kind: dict[str, Any] = {"fan_in": build_fan_in, "end": build_end_actor}
        build_actor: Any = {"x-sink": build_sink, "x-sump": build_sump}.get(actor, by_kind.get(kind, build_sidecar))
        process: Callable[[Mapping[str, Any]], Mapping[str, Any]] = build_actor(found).process
        return process

    def _services(self, actor: str) -> Services:
        return dataclasses.replace(self.world.services(actor, self.table), environment=self.clock)
