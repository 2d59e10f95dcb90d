"""A few actors in a row, run by their real sidecars, x-sink and x-sump: what is sent is delivered until nothing moves."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from asya.crew.lambdas.wiring import build_end_actor, build_sink, build_sump
from asya.protocol.envelope import Envelope
from asya.protocol.hops import fold, hop_records
from asya.protocol.mesh_table import Actor, MeshTable, Sink
from asya.protocol.task import TaskRecord, merge
from asya.protocol.times import parse_time
from asya.sidecar.lambdas.wiring import build_sidecar
from asya.tasks.view import TaskView, task_view
from tests.doubles.envelopes import mesh
from tests.doubles.mesh_world import MeshWorld, kept, sqs_event
from tests.doubles.tables import MemoryDynamo, Table

Handler = Callable[[Any], Any]


class KeptError(AssertionError):
    """A message was not acknowledged."""


@dataclass
class Pipeline:
    """Handlers by actor, and everything that happened to what was sent to them.

    Attributes:
        spec: keys of every actor.
        received: what each actor was given, in order; the end actors too.
    """

    world: MeshWorld
    handlers: Mapping[str, Handler]
    spec: dict[str, Any] = field(default_factory=dict)
    sink: Sink = field(default_factory=Sink)
    received: list[tuple[str, Envelope]] = field(default_factory=list)
    _taken: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tables = MemoryDynamo({"asya-shop-sink": Table()})
        self.world.monkeypatch.setattr("asya.messaging.aws.clients.dynamodb", lambda: tables)

    def send(self, actor: str, envelope: bytes | str | Mapping[str, Any]) -> "Pipeline":
        """Put a message on an actor's queue and run until nothing moves."""
        body = json.dumps(envelope) if isinstance(envelope, Mapping) else envelope
        self._deliver(actor, body)
        while waiting := self._waiting():
            for target, message in waiting:
                self.received.append((target, message.envelope))
                self._deliver(target, message.body)
        return self

    def at(self, actor: str) -> list[Envelope]:
        """The envelopes that an actor was given by others."""
        return [envelope for name, envelope in self.received if name == actor]

    def payloads(self, actor: str) -> list[Any]:
        """Their payloads."""
        return [json.loads(bytes(envelope.payload)) for envelope in self.at(actor)]

    def stored(self, key: str) -> Any:
        """What an object of the results holds."""
        return json.loads(self.world.s3.content(f"results/{key}"))

    def task(self, envelope_id: str, *, reports: int | None = None) -> TaskView:
        """The task as the gateway would show it, after so many of the reports on it."""
        record: TaskRecord | None = None
        events = [event for event in self.world.gateway.events if event.id == envelope_id][:reports]
        for event in events:
            record = merge(record, event)
        assert record is not None, f"nothing was reported on {envelope_id}"
        return task_view(record, fold(hop_records(events)), parse_time(events[-1].at))

    def percents(self, envelope_id: str) -> list[int]:
        """The progress after each of its reports but the registration."""
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
        if kept(answer):
            raise KeptError(f"the message stays on the queue of {actor}")

    def _waiting(self) -> list[tuple[str, Any]]:
        found = []
        for queue, messages in list(self.world.sqs.sent.items()):
            new = messages[self._taken.get(queue, 0) :]
            self._taken[queue] = len(messages)
            found += [(queue.removeprefix("asya-shop-"), message) for message in new]
        return found
