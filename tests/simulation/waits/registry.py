"""Checks waits (`protocol §11`): what is held goes on when it is due, and not before."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from asya.protocol.keys import wait_key
from asya.testing.dynamo.values import Item
from tests.simulation.checks.observed_envelope import ObservedEnvelope

HEADER = "x-asya-wait"


@dataclass
class WaitRegistry:
    """Reads the waits of all tasks from the bucket and the records.

    Attributes:
        objects: the mesh's bucket.
        tasks: the items of the tasks table.
    """

    objects: Mapping[str, bytes]
    tasks: Mapping[tuple[str, str], Item]

    def has_held(self, envelope: ObservedEnvelope) -> bool:
        """Whether an object holds this envelope, or held it until it was sent on."""
        key = wait_key(envelope.id, envelope.generation, len(envelope.prev), 1)
        return key in self.objects

    def release_problems(self, envelope: ObservedEnvelope, to: str, now: datetime) -> Iterator[str]:
        """Yield the violations of an envelope that the sweep sends: it is held for this actor, and it is due."""
        header = envelope.headers[HEADER]
        if not self.has_held(envelope):
            yield f"the sweep sent {envelope.id} to {to}, but nothing holds it"
        record = self.tasks[envelope.id, "record"]
        if datetime.fromisoformat(header["until"]) > now and record["status"]["S"] != "canceled":
            yield f"the sweep sent {envelope.id} at {now}, but it waits until {header['until']}"

    @property
    def unsent(self) -> list[str]:
        """The ids of the tasks whose wait was not sent."""
        return [
            task_id
            for (task_id, kind), item in self.tasks.items()
            if kind == "record" and "wait" in item and not json.loads(item["wait"]["S"]).get("is_sent")
        ]
