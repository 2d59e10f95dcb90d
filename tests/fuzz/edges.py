"""The functions of a mesh that read queues, over services in memory, and what they leave behind."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from asya.capabilities.fan_in.lambdas.wiring import build_fan_in
from asya.capabilities.pauses.lambdas.wiring import build_pause, build_resume
from asya.ends.lambdas.wiring import build_checkpoint, build_end_actor, build_sink, build_sump
from asya.function.aws import clients
from asya.function.aws.settings import SparkSettings
from asya.function.lambdas.batch import BatchResponse
from asya.heavy.lambdas.enqueue import Enqueuer
from asya.heavy.lambdas.services import SparkServices
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol import codec
from asya.protocol.mesh_table import Actor, FanIn, MeshTable, SparkApplication, SparkJob
from asya.protocol.pause import Pause, PauseField
from asya.sidecar.lambdas.services import Services
from asya.testing.dynamo.queries import new_tables
from asya.testing.dynamo.tables import MemoryDynamo
from tests.doubles.envelopes import mesh
from tests.doubles.mesh_world import MeshWorld, mesh_world, sqs_event

CONTROL_QUEUES = ("x-dispatch", "x-completion", "x-reports", "x-ends")
"""Their messages are no envelopes."""

TABLE: MeshTable = mesh(
    {
        "generate": Actor(kind="handler", handler="handlers.generate"),
        "crunch": Actor(kind="spark", spark=SparkJob(job="jobs.crunch")),
        "approve": Actor(kind="pause", pause=Pause(fields=(PauseField(name="approved", type="boolean"),))),
        "archive": Actor(kind="end", handler="handlers.archive", handler_mode="envelope"),
        "x-resume": Actor(kind="crew"),
        "x-checkpoint": Actor(kind="crew"),
        "x-fan-in": Actor(kind="fan_in", fan_in=FanIn()),
    },
    spark=SparkApplication(),
)

SPARK = SparkSettings(
    application_id="00app",
    role_prefix="arn:aws:iam::123456789012:role/",
    entry_point="s3://assets/entry.py",
    py_files=("s3://assets/asya.zip",),
    access_policy_prefix="arn:aws:iam::123456789012:policy/",
)


class Bus:
    """EventBridge, which takes every event."""

    def put_events(self, *, Entries: list[dict[str, str]]) -> dict[str, Any]:  # noqa: N803
        """Accept a batch of events."""
        return {"FailedEntryCount": 0, "Entries": [{"EventId": str(number)} for number, _ in enumerate(Entries)]}


class Edges:
    """The functions of the mesh `TABLE`; each call starts with empty queues, buckets and tables."""

    def __init__(self, world: MeshWorld) -> None:
        self.world = world

    def process(self, actor: str, *bodies: str) -> BatchResponse:
        """Give a batch to the function of an actor."""
        self.world.sqs.sent.clear()
        self.world.s3.objects.clear()
        self.world.dynamodb.tables = new_tables(TABLE)
        return self._function(actor)(sqs_event(*bodies))

    @property
    def sent(self) -> dict[str, list[str]]:
        """The messages of the last call by actor."""
        sent = self.world.sqs.sent.items()
        return {queue.removeprefix("asya-shop-"): [each.body for each in some] for queue, some in sent if some}

    @property
    def is_empty(self) -> bool:
        """Whether the last call left nothing: no message, no object, no item."""
        return not self.sent and not self.world.s3.objects and not any(self.items)

    @property
    def items(self) -> list[Any]:
        """All items of all tables."""
        return [item for table in self.world.dynamodb.tables.values() for item in table.items.values()]

    def check_messages(self) -> None:
        """Check that every message that was sent to an actor is a valid envelope, x-sump's included."""
        for actor, bodies in self.sent.items():
            if actor in CONTROL_QUEUES:
                continue
            for body in bodies:
                if "type" not in json.loads(body):  # slice-ended and set-due are no envelopes
                    codec.decode(body.encode())

    def _function(self, actor: str) -> Callable[[dict[str, Any]], BatchResponse]:
        world = self.world
        match actor:
            case "infer":
                return build_sidecar(self._light(actor, _echo)).process
            case "generate":
                return build_sidecar(self._light(actor, _generate)).process
            case "archive":
                spec = {"kind": "end", "handler_mode": "envelope", "validate": False}
                return build_end_actor(self._light(actor, _echo, **spec)).process
            case "crunch":
                services = world.services(actor, TABLE)
                settings = replace(services.settings, spark=SPARK)
                return Enqueuer(SparkServices(replace(services, settings=settings))).process
        build: Callable[..., Any] = {
            "x-sink": build_sink,
            "x-sump": build_sump,
            "approve": build_pause,
            "x-resume": build_resume,
            "x-checkpoint": build_checkpoint,
            "x-fan-in": build_fan_in,
        }[actor]
        process: Callable[[dict[str, Any]], BatchResponse] = build(world.services(actor, TABLE)).process
        return process

    def _light(self, actor: str, handler: Callable[[Any], Any], **spec: Any) -> Services:
        others = {name: other for name, other in TABLE.actors.items() if name != actor}
        return self.world.light(handler, actor=actor, others=others, **spec)


@contextmanager
def edges() -> Iterator[Edges]:
    """The functions of a mesh over services in memory."""
    with pytest.MonkeyPatch.context() as monkeypatch, mesh_world(monkeypatch) as world:
        monkeypatch.setattr(clients, "events", Bus)
        world.dynamodb = MemoryDynamo({})
        yield Edges(world)


def _echo(payload: Any) -> Any:
    return payload


def _generate(payload: Any) -> Iterator[Any]:
    """Reads and changes what came with the payload."""
    yield ("GET", ".headers")
    yield ("GET", ".route.prev")
    yield ("SET", ".headers.color", "red")
    yield ("FLY", {"half": "done"})
    yield payload
    yield {"second": True}
