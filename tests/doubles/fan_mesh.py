"""A whole mesh that fans out, in one process: the real entry points between queues and tables that are worked off in any order.

The process may be made to die before or after any call to AWS; what it had not acknowledged then comes again.
"""

import dataclasses
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from asya.crew.lambdas.wiring import build_end_actor, build_sink, build_sump
from asya.fan_in.lambdas.wiring import build_fan_in, build_sweep
from asya.messaging.aws import clients
from asya.messaging.lambdas.environment import RealEnvironment
from asya.protocol.mesh_table import Actor, FanIn, MeshTable
from asya.sidecar.lambdas.services import Services
from asya.sidecar.lambdas.wiring import build_sidecar
from tests.doubles.mesh_world import MeshWorld, sqs_event

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PREFIX = "asya-shop-"
HANDLERS = "tests.doubles.fan_handlers"


class Died(BaseException):
    """The process was ended."""


class Clock(RealEnvironment):
    """A clock that moves only when told to, and no threads."""

    is_threaded = False

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 20, 12, tzinfo=UTC)

    def now(self) -> datetime:
        self.moment += timedelta(microseconds=1)
        return self.moment


@dataclass
class Deaths:
    """When the process dies: at which of its calls to AWS, and whether before or after it took effect."""

    at: dict[int, str] = field(default_factory=dict)
    calls: int = 0

    def around(self, call: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """Make a call, unless this is the end."""
        self.calls += 1
        when = self.at.get(self.calls)
        if when == "before":
            raise Died
        answer = call(*args, **more)
        if when == "after":
            raise Died
        return answer


class Mortal:
    """A client whose calls may be the process's last."""

    _WATCHED = ("put_item", "update_item", "get_item", "send_message_batch", "put_object")

    def __init__(self, client: Any, deaths: Deaths) -> None:
        self._client = client
        self._deaths = deaths

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name not in self._WATCHED:
            return call
        return lambda *args, **more: self._deaths.around(call, *args, **more)


@dataclass
class Waiting:
    """A message on a queue."""

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
    """The mesh at work.

    Attributes:
        chance: what decides on the order of messages.
        duplicates: the share of messages that come once more.
    """

    world: MeshWorld
    dynamodb: "DynamoDBClient"
    table: MeshTable
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    duplicates: float = 0.0
    deaths: Deaths = field(default_factory=Deaths)
    clock: Clock = field(default_factory=Clock)
    waiting: list[Waiting] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    lost: Callable[[Waiting], bool] = lambda message: False

    def __post_init__(self) -> None:
        mortal = (
            Mortal(self.dynamodb, self.deaths),
            Mortal(self.world.sqs, self.deaths),
            Mortal(self.world.s3, self.deaths),
        )
        for name, client in zip(("dynamodb", "sqs", "s3"), mortal, strict=True):
            self.world.monkeypatch.setattr(clients, name, lambda client=client: client)

    def send(self, actor: str, body: bytes | str) -> None:
        """Put a message onto a queue."""
        text = body if isinstance(body, str) else body.decode()
        self.waiting.append(Waiting(actor, text, self.clock.moment))

    def start(self, payload: Any, *, envelope_id: str = "env-1", ahead: tuple[str, ...] = ("x-fan-in", "post")) -> None:
        """Start a task at split."""
        status = {"phase": "pending", "actor": "split", "attempt": 1, "max_attempts": 1}
        route = {"prev": [], "curr": "split", "next": list(ahead)}
        self.send("split", json.dumps({"id": envelope_id, "route": route, "status": status, "payload": payload}))

    def run(self, *, until: timedelta = timedelta(0)) -> None:
        """Work everything off, moving the clock on to what is delayed, but not beyond `until` from now."""
        last = self.clock.moment + until
        for _ in range(2000):
            self._gather()
            due = [message for message in self.waiting if message.due <= self.clock.moment]
            if not due:
                later = min((message.due for message in self.waiting), default=None)
                if later is None or later > last:
                    self.clock.moment = max(self.clock.moment, last)
                    return
                self.clock.moment = later
                continue
            self._deliver(self.chance.choice(due))
        raise AssertionError(f"the mesh does not come to rest: {self.waiting}")

    def sweep(self) -> None:
        """The schedule's tick."""
        build_sweep(self._services("x-fan-in-sweep")).sweep()

    def process(self, actor: str, *bodies: bytes | str) -> list[str]:
        """One batch, at once; the ids of what stays."""
        answer = self._function(actor)(sqs_event(*bodies))
        return [item["itemIdentifier"] for item in answer["batchItemFailures"]]

    def result(self, envelope_id: str = "env-1", phase: str = "succeeded") -> Any:
        """The envelope that x-sink wrote."""
        return json.loads(self.world.s3.content(f"results/{phase}/{envelope_id}.json"))

    @property
    def ends(self) -> list[str]:
        """What x-sink wrote: `phase/id.json`."""
        return [key.removeprefix("results/") for key in self.world.s3.keys("results/") if "sump" not in key]

    def merged(self, envelope_id: str = "env-1", actor: str = "post") -> set[str]:
        """The different messages that brought an envelope to the actor behind the fan-in."""
        bodies = [message.body for message in self.world.messages(actor)]
        return {body for body in bodies if json.loads(body)["id"] == envelope_id}

    def open_sets(self) -> int:
        """How many sets there are that something is still to come of."""
        items = self.dynamodb.scan(TableName="asya-shop-fan-in")["Items"]
        return sum("open_in" in item for item in items)

    def _gather(self) -> None:
        """What was sent since the last time is waiting now."""
        for queue, messages in self.world.sqs.sent.items():
            actor = queue.removeprefix(PREFIX)
            for message in messages[self.seen.get(queue, 0) :]:
                due = self.clock.moment + timedelta(seconds=message.delay)
                waiting = Waiting(actor, message.body, due)
                if not self.lost(waiting):
                    self.waiting.append(waiting)
            self.seen[queue] = len(messages)

    def _deliver(self, message: Waiting) -> None:
        message.receives += 1
        assert message.receives < 12, f"comes again and again: {message}"
        function = self._function(message.actor)
        try:
            answer: Mapping[str, Any] = function(sqs_event(message.body, receive_counts={0: message.receives}))
        except Died:
            answer = {"batchItemFailures": [{}]}
        if answer["batchItemFailures"]:
            message.due = self.clock.moment + timedelta(seconds=5 * message.receives)
        elif self.chance.random() >= self.duplicates:
            self.waiting.remove(message)

    def _function(self, actor: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
        """A process of its own for each batch, as after a cold start."""
        found, kind = self._services(actor), self.table.actors[actor].kind
        by_kind: dict[str, Any] = {"fan_in": build_fan_in, "end": build_end_actor}
        build_actor: Any = {"x-sink": build_sink, "x-sump": build_sump}.get(actor, by_kind.get(kind, build_sidecar))
        process: Callable[[Mapping[str, Any]], Mapping[str, Any]] = build_actor(found).process
        return process

    def _services(self, actor: str) -> Services:
        return dataclasses.replace(self.world.services(actor, self.table), environment=self.clock)
