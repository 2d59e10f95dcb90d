"""A mesh with wait actors in one process: its services in memory, a clock that a test moves, and a process that dies."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asya.capabilities.pauses.lambdas.wiring import build_resume, build_sweep, build_wait
from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.lambdas.environment import RealEnvironment
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol.envelope import Envelope
from asya.protocol.events import TaskEvent
from asya.protocol.mesh_table import Actor, MeshTable, Policy, Resiliency
from asya.protocol.task import TaskRecord
from asya.protocol.wait import Wait
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.cancellation import cancel_record
from asya.tasks.received_reports import read_events
from asya.testing.planned_faults import Death
from asya.testing.services.direct import MemoryS3, MemorySqs
from asya.testing.services.faults import Fault
from tests.doubles.dynamo import create_tasks_table
from tests.doubles.envelopes import mesh, message
from tests.doubles.mesh_world import batch_failures, sqs_event
from tests.unit.memory_tables import memory_tables

DAY = timedelta(days=1)
BEGAN = datetime(2026, 11, 20, 12, tzinfo=UTC)
GATEWAY = "https://api.example/prod"
LATER = Resiliency(policies={"default": Policy(max_attempts=3, backoff="constant", initial_delay=2 * 86400.0)})
MESH = mesh(
    {
        "cool-down": Actor(kind="wait", wait=Wait(seconds=3 * 86400.0)),
        "embargo": Actor(kind="wait", wait=Wait(until="/publish_at")),
        "timed": Actor(kind="wait", wait=Wait(seconds=3 * 86400.0, deadline="stands")),
        "embargo-timed": Actor(kind="wait", wait=Wait(until="/publish_at", deadline="stands")),
        "flaky": Actor(kind="handler", handler="tests.doubles.waiting.fail", resiliency=LATER),
        "x-wait": Actor(kind="wait"),
        "x-resume": Actor(kind="crew"),
    }
)


def fail(_payload: Any) -> Any:
    """A handler that fails."""
    raise ConnectionError("gone")


class Clock(RealEnvironment):
    """A clock that stands still until a test moves it, without threads."""

    is_threaded = False

    def __init__(self) -> None:
        self.moment = BEGAN

    def now(self) -> datetime:
        """See `Environment`."""
        return self.moment


@dataclass
class WaitingWorld:
    """The functions of one mesh, and all that they share."""

    table: MeshTable = MESH
    clock: Clock = field(default_factory=Clock)
    death: Death = field(default_factory=Death)
    s3: MemoryS3 = field(default_factory=MemoryS3)
    sqs: MemorySqs = field(default_factory=MemorySqs)

    def fault(self, service: str, what: str) -> Fault:
        """The fault of a call: the death that is planned now."""
        return self.death.plan(service, what)

    def services(self, actor: str) -> Services:
        """The services of a function in a new process."""
        settings = Settings(
            table=self.table,
            actor=actor,
            region="eu-west-1",
            heartbeats=True,
            bucket="bucket",
            data_uri="s3://bucket/data/",
            results_uri="s3://bucket/results/",
            queue_url_prefix="https://sqs.eu-west-1.amazonaws.com/123456789012/",
            gateway_url=GATEWAY,
        )
        return Services(settings, self.clock)

    def deliver(self, actor: str, *bodies: bytes | str) -> list[str]:
        """Deliver messages to an actor; returns the ids of those that stay on its queue."""
        build = {"x-resume": build_resume, "flaky": build_sidecar}.get(actor, build_wait)
        return batch_failures(build(self.services(actor)).process(sqs_event(*bodies)))  # type: ignore[arg-type]

    def arrive(self, actor: str, *, next_actor: str = "post", **members: Any) -> bytes:
        """Deliver a new envelope to an actor, and return its message."""
        body = message(**({"route": {"prev": ["prep"], "curr": actor, "next": [next_actor]}} | members))
        assert self.deliver(actor, body) == []
        return body

    def sweep(self) -> None:
        """Run the sweep of pauses in a new process."""
        build_sweep(self.services("x-pause-sweep")).sweep()

    def sent(self, actor: str) -> list[Envelope]:
        """The envelopes that were sent to an actor."""
        return [message.envelope for message in self.sqs.sent[f"asya-shop-{actor}"]]

    def take(self, actor: str) -> list[str]:
        """Take the bodies of the messages off an actor's queue."""
        messages, self.sqs.sent[f"asya-shop-{actor}"] = self.sqs.sent[f"asya-shop-{actor}"], []
        return [message.body for message in messages]

    def go_on(self, actor: str) -> None:
        """Sweep, and deliver to an actor what the sweep sent to it."""
        self.sweep()
        for body in self.take(actor):
            assert self.deliver(actor, body) == []

    def record(self, task_id: str = "env-1") -> TaskRecord:
        """The record of a task."""
        store = StoredTasks(self.services("x-reports")).store
        return store.records([task_id], self.clock.moment, consistent=True)[task_id].record

    def cancel(self, task_id: str = "env-1") -> None:
        """Cancel a task, as the gateway does."""
        tasks = StoredTasks(self.services("x-gateway-api")).tasks
        now = self.clock.moment
        tasks.update(task_id, lambda record, hops: cancel_record(record, hops, now=now, by="AIDAOSCAR"), now)

    def take_reports(self, _queue: str, body: str) -> bool:
        """Write reports, as x-reports does."""
        tasks = StoredTasks(self.services("x-reports")).tasks
        events = [event for event in read_events(body.encode()) if isinstance(event, TaskEvent)]
        return all(result.status == 204 for result in tasks.report(events, self.clock.moment, may_create=True))

    def held(self, key: str) -> dict[str, Any]:
        """A held envelope, or its tombstone."""
        found: dict[str, Any] = json.loads(self.s3.content(key))
        return found


@contextmanager
def waiting_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[WaitingWorld]:
    """A world whose queues, bucket and tables are in memory."""
    with memory_tables():
        world = WaitingWorld()
        tables = clients.dynamodb()
        create_tasks_table(tables, "asya-shop-tasks")
        create_tasks_table(tables, "asya-shop-sink")
        # Reports are written by another process, which lives on.
        world.sqs.take_reports = world.take_reports
        for client in (world.sqs, world.s3):
            client.process.faults.plans.append(world.fault)
        monkeypatch.setattr(clients, "sqs", lambda: world.sqs)
        monkeypatch.setattr(clients, "s3", lambda: world.s3)
        monkeypatch.setattr(clients, "dynamodb_without_waiting", lambda: tables)
        yield world
