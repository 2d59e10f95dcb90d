"""A property: each object and each event starts one task, whatever happens to its messages (`protocol §16.start`).

SQS delivers one to three copies of each message in any order. Processes die at any call, calls fail or lose their answers, and
half-way a deployment replaces the function by one that has another trigger. The bucket notifies of its keys before that.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any
from unittest import mock
from urllib.parse import quote_plus

import pytest
from msgspec import structs

from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.protocol import ids, names
from asya.protocol.codec import decode
from asya.protocol.mesh_table import QUEUE_RECEIVES, Actor, MeshTable
from asya.protocol.triggers import EventSource, ObjectSource, Trigger
from asya.senders.lambdas import wiring as sender_wiring
from asya.tasks.starts.idempotency import STARTERS
from asya.testing.dynamo.queries import new_tables
from asya.testing.dynamo.tables import MemoryDynamo
from asya.testing.history import History
from asya.testing.services.clients import Bucket, DynamoClient, S3Client
from asya.testing.services.event_source import EventSources
from asya.testing.services.faults import FaultProfile, Faults
from asya.testing.services.functions import BUCKET, QUEUES, REGION, Function
from asya.testing.services.gateway import URL
from asya.testing.services.process import Process, Simulation, current_process
from asya.testing.services.queues import Queue, Queues, SqsClient
from asya.testing.services.roles import ListedRoles, role_id, write_secrets
from asya.testing.services.scheduler import EventLog, Scheduler
from asya_infra import timings

EVENTS = 10_000 if os.environ.get("ASYA_FULL_SIZE") else 400
PACE = 0.5
"""Seconds between two events."""
WAIT = 60.0
"""A copy of a message comes within so many seconds."""
SEEDS = (1, 2)
_AT = "2026-11-20T12:00:00Z"
FIRST = MeshTable(
    namespace="sim",
    actors={"count": Actor(kind="handler")},
    triggers={
        "landed": Trigger(route=("count",), objects=ObjectSource(bucket="data", prefix="raw/", suffix=".csv")),
        "ordered": Trigger(route=("count",), event=EventSource(source=("shop",)), input="/detail"),
    },
)
ADDED = Trigger(route=("count",), objects=ObjectSource(bucket="data", prefix="late/"))
SECOND = structs.replace(FIRST, triggers={**FIRST.triggers, "late": ADDED})


@dataclass
class World:
    """The queue of triggers with its function, the tables, and the queue of the first actor, which nobody consumes."""

    simulation: Simulation
    queues: Queues
    tables: MemoryDynamo
    sources: EventSources
    bucket: Bucket

    @contextmanager
    def active(self) -> Iterator[None]:
        with (
            mock.patch.object(clients, "sqs", self._sqs),
            mock.patch.object(clients, "s3", lambda: S3Client(current_process(), self.bucket)),
            mock.patch.object(clients, "dynamodb", lambda: DynamoClient(current_process(), self.tables)),
            mock.patch.object(
                clients, "dynamodb_without_waiting", lambda: DynamoClient(current_process(), self.tables)
            ),
            mock.patch.object(sender_wiring, "build_role_list", lambda *_: ListedRoles()),
        ):
            yield

    def _sqs(self) -> SqsClient:
        return SqsClient(current_process(), self.queues, f"{role_id(names.TRIGGERS)}:session")

    @property
    def function(self) -> Function:
        return self.sources.functions[queue(names.TRIGGERS)]

    def records(self) -> list[str]:
        """The ids of all records, from the items of the table."""
        items = self.tables.tables[names.table_name("sim", "tasks")].items
        return [key[0] for key in items if key[1] == "record"]

    def sent(self) -> dict[str, list[Any]]:
        """The payloads of the first messages by task; a process that dies after its send sends again."""
        payloads: dict[str, list[Any]] = {}
        for message in self.queues.queues[queue("count")].messages:
            envelope = decode(message.body.encode())
            payloads.setdefault(envelope.id, []).append(json.loads(bytes(envelope.payload)))
        return payloads


def queue(actor: str) -> str:
    return names.queue_name("sim", actor)


def settings(table: MeshTable) -> Settings:
    return Settings(
        table=table,
        actor=names.TRIGGERS,
        region=REGION,
        bucket=BUCKET,
        data_uri=f"s3://{BUCKET}/data/",
        results_uri=f"s3://{BUCKET}/results/",
        queue_url_prefix=QUEUES,
        gateway_url=URL,
    )


def deploy(random: Random) -> World:
    horizon = EVENTS * PACE + WAIT
    faults = FaultProfile(
        crashes=0.02, refusals=0.02, lost_responses=0.02, repeats=0.02, lost_acks=0.05, stalls=0.002, until=horizon
    )
    simulation = Simulation(Scheduler(limit=EVENTS * 1000), Faults(random, faults), random, EventLog())
    history = History()
    sources = EventSources(simulation, history, {})
    queues = Queues(simulation, history, sources.wake)
    sources.queues = queues
    visibility = float(timings.visibility_timeout(STARTERS[names.TRIGGERS], 0))
    for name, receives in ((names.TRIGGERS, QUEUE_RECEIVES), ("count", None)):
        queues.queues[queue(name)] = Queue(queue(name), visibility, receives)
        queues.queues[f"{queue(name)}-dlq"] = Queue(f"{queue(name)}-dlq", 30.0, None)
    sources.functions[queue(names.TRIGGERS)] = Function(
        actor=names.TRIGGERS,
        settings=settings(FIRST),
        batch_size=10,
        timeout=STARTERS[names.TRIGGERS],
        concurrency=5,
        new_process=lambda name: Process(name, simulation),
    )
    tables = MemoryDynamo(new_tables(FIRST))
    write_secrets(tables, FIRST)
    return World(simulation, queues, tables, sources, Bucket(history, {}))


@dataclass(frozen=True)
class Event:
    """An event, and the task that it has to start."""

    body: str
    task_id: str
    payload: Any


def event(number: int, kind: str) -> Event:
    if kind == "ordered":
        content = {"id": f"event-{number}", "source": "shop", "detail-type": "Placed", "time": _AT}
        detail = {"order": number}
        body = {"trigger": "ordered", "event": {**content, "detail": detail}}
        return Event(json.dumps(body), ids.occurrence_id("ordered", f"event event-{number}"), detail)
    folder = {"landed": "raw", "late": "late"}[kind]
    key, sequencer = f"{folder}/file {number % 50}.csv", f"{number:016X}"
    written = {"key": quote_plus(f"data/{key}", safe="/"), "size": number, "eTag": "e", "sequencer": sequencer}
    record = {
        "eventName": "ObjectCreated:Put",
        "eventTime": _AT,
        "s3": {"bucket": {"name": BUCKET}, "object": written},
    }
    payload = {"bucket": "data", "key": key, "uri": f"s3://{BUCKET}/data/{key}", "size": number, "etag": "e"}
    occurrence = f"object {BUCKET}/data/{key} {sequencer}"
    return Event(
        json.dumps({"Records": [record]}), ids.occurrence_id(kind, occurrence), {**payload, "sequencer": sequencer}
    )


@pytest.mark.rule("16.start", "16.objects", "16.objects.deployment", "16.events")
@pytest.mark.parametrize("seed", SEEDS)
def test_16_each_event_has_one_record(seed: int) -> None:
    random = Random(f"events {seed}")
    world = deploy(random)
    scheduler = world.simulation.scheduler
    change = EVENTS * PACE / 2
    events: list[Event] = []
    for number in range(EVENTS):
        at = number * PACE
        # The keys of the new trigger are notified of a minute before the function has it.
        kind = random.choice(("landed", "ordered", "late") if at > change - 60.0 else ("landed", "ordered"))
        events.append(event(number, kind))
        for _ in range(random.randint(1, 3)):
            later = at + random.uniform(0.0, WAIT)
            scheduler.after(
                later,
                lambda body=events[-1].body: world.queues.send(queue(names.TRIGGERS), body, sender=None, by="AIDAAWS"),
            )
    scheduler.after(change, lambda: world.function.replace(settings(SECOND)))
    with world.active():
        scheduler.run()
    assert world.queues.queues[queue(names.TRIGGERS)].messages == []
    assert world.queues.queues[f"{queue(names.TRIGGERS)}-dlq"].messages == []
    assert world.simulation.faults.drawn.keys() >= {"CRASH_BEFORE", "CRASH_AFTER", "ANSWER_LOST", "REFUSED"}
    expected = {each.task_id: each.payload for each in events}
    assert len(expected) == EVENTS
    assert Counter(world.records()) == Counter(expected.keys())
    sent = world.sent()
    assert sent.keys() == expected.keys()
    assert all(payload == expected[task_id] for task_id, payloads in sent.items() for payload in payloads)
