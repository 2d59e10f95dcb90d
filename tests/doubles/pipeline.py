"""Runs a pipeline of handlers with real sidecars, x-sink and x-sump, until all messages are processed."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from asya.ends.lambdas.wiring import build_end_actor, build_sink, build_sump
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol.envelope import Envelope
from asya.protocol.hops import fold, hop_records
from asya.protocol.mesh_table import Actor, MeshTable, Sink
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import merge
from asya.protocol.times import parse_time
from asya.tasks.view import TaskView, task_view
from asya.testing.dynamo.tables import MemoryDynamo, Table
from tests.doubles.envelopes import mesh
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

Handler = Callable[[Any], Any]


class NotAcknowledgedError(AssertionError):
    """A message stays on its queue."""


@dataclass
class Pipeline:
    """Handlers by actor, and the envelopes that each actor received.

    Attributes:
        spec: options of every actor.
        received: the actor and envelope of each received message, in order, with the end actors.
    """

    world: MeshWorld
    handlers: Mapping[str, Handler]
    spec: dict[str, Any] = field(default_factory=dict)
    sink: Sink = field(default_factory=Sink)
    received: list[tuple[str, Envelope]] = field(default_factory=list)
    _taken: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tables = MemoryDynamo({"asya-shop-sink": Table()})
        self.world.monkeypatch.setattr("asya.function.aws.clients.dynamodb", lambda: tables)

    def send(self, actor: str, envelope: bytes | str | Mapping[str, Any]) -> "Pipeline":
        """Send a message to an actor, and process messages until none is left."""
        body = json.dumps(envelope) if isinstance(envelope, Mapping) else envelope
        self._deliver(actor, body)
        while waiting := self._waiting():
            for target, message in waiting:
                self.received.append((target, message.envelope))
                self._deliver(target, message.body)
        return self

    def at(self, actor: str) -> list[Envelope]:
        """The envelopes that an actor received from other actors."""
        return [envelope for name, envelope in self.received if name == actor]

    def payloads(self, actor: str) -> list[Any]:
        """The payloads of the envelopes at an actor."""
        return [json.loads(bytes(envelope.payload)) for envelope in self.at(actor)]

    def stored(self, key: str) -> Any:
        """The JSON value of a result."""
        return json.loads(self.world.s3.content(f"results/{key}"))

    def task(self, envelope_id: str, *, reports: int | None = None) -> TaskView:
        """The task as the gateway shows it, after all or the first `reports` of its reports."""
        record: TaskRecord | None = None
        events = [event for event in self.world.gateway.events if event.id == envelope_id][:reports]
        for event in events:
            record = merge(record, event)
        assert record is not None, f"{envelope_id} has no report"
        return task_view(record, fold(hop_records(events)), parse_time(events[-1].at))

    def percents(self, envelope_id: str) -> list[int]:
        """The progress after each report except the registration."""
        reported = self.world.gateway.reported(envelope_id)
        return [
            self.task(envelope_id, reports=count).progress_percent
            for count, status in enumerate(reported, start=1)
            if status != "registered"
        ]

    def _table(self) -> MeshTable:
        actors = {name: Actor(**self._actor(name)) for name in self.handlers}
        return mesh(actors, sink=self.sink)

    def _actor(self, name: str) -> dict[str, Any]:
        return {"kind": "handler", "handler": f"handlers.{name}", "timeout": 60.0, **self.spec}

    def _deliver(self, actor: str, body: bytes | str) -> None:
        table = self._table()
        if actor == "x-sink":
            answer = build_sink(self.world.services(actor, table)).process(sqs_event(body))
        elif actor == "x-sump":
            answer = build_sump(self.world.services(actor, table)).process(sqs_event(body))
        else:
            others = {name: spec for name, spec in table.actors.items() if name != actor}
            found = self.world.light(self.handlers[actor], actor=actor, others=others, **self.spec)
            build = build_end_actor if self.spec.get("kind") == "end" else build_sidecar
            answer = build(found).process(sqs_event(body))
        if batch_failures(answer):
            raise NotAcknowledgedError(f"the message stays on the queue of {actor}")

    def _waiting(self) -> list[tuple[str, Any]]:
        found = []
        for queue, messages in list(self.world.sqs.sent.items()):
            new = messages[self._taken.get(queue, 0) :]
            self._taken[queue] = len(messages)
            found += [(queue.removeprefix("asya-shop-"), message) for message in new]
        return found
