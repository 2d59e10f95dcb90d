"""The function of dead letters between queues that the tests fill."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from asya.capabilities.dead_letters.aws.letters import MessageCount, ReceivedMessage
from asya.capabilities.dead_letters.lambdas.dlq import DeadLetterWatch, build_dlq
from asya.protocol.mesh_table import Actor
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.tasks import Tasks
from tests.doubles.envelopes import arrival_of, mesh
from tests.doubles.mesh_world import MeshWorld

MESH = mesh({"x-fan-in": Actor(kind="fan_in"), "crunch": Actor(kind="spark")})


@dataclass
class FakeDlq:
    """A dead-letter queue that gives two messages at a time, hides what it gave, and has no way to remove one."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    released_ids: list[str] = field(default_factory=list)
    broken: bool = False
    hidden_for: int = 0

    def count(self) -> MessageCount:
        if self.broken:
            raise ClientError({"Error": {"Code": "ServiceUnavailable", "Message": "on demand"}}, "GetQueueAttributes")
        return MessageCount(len(self.bodies), 0)

    def scan(self, *, hide_seconds: int, may_continue: Callable[[], bool]) -> Iterator[list[ReceivedMessage]]:
        self.hidden_for = hide_seconds
        left = [
            ReceivedMessage(arrival_of(body, message_id=message_id), f"handle of {message_id}")
            for message_id, body in self.bodies.items()
        ]
        while left and may_continue():
            some, left = left[:2], left[2:]
            yield some

    def release(self, receipt_handles: Iterable[str]) -> None:
        self.released_ids += [each.removeprefix("handle of ") for each in receipt_handles]


@dataclass
class DlqWorld:
    """The function between queues that the tests fill."""

    world: MeshWorld
    services: Services
    queues: dict[str, FakeDlq] = field(default_factory=dict)

    def put(self, actor: str, message_id: str, body: bytes) -> FakeDlq:
        queue = self.queues.setdefault(actor, FakeDlq())
        queue.bodies[message_id] = body
        return queue

    def watch(self) -> DeadLetterWatch:
        queue: Any = lambda actor: self.queues.setdefault(actor, FakeDlq())  # noqa: E731
        return replace(build_dlq(self.services), queue=queue)

    def scan(self, *actors: str) -> None:
        self.watch().scan(actors or ("infer",))

    @property
    def reported(self) -> list[tuple[str, str]]:
        return [(each.id, each.data.reason or each.status) for each in self.world.gateway.events]

    def known(self, *events: Any) -> None:
        """The task has been reported on before."""
        store = DynamoTaskStore(self.world.dynamodb, "asya-shop-tasks", 3600.0)  # type: ignore[arg-type]
        Tasks(store, print, threaded=False).report(list(events), datetime.now(UTC), may_create=True)
