"""Messages of a sender outside, about tasks of others (`protocol §4.entry`)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from asya.protocol.times import format_time
from tests.simulation.cloud import Cloud

STRANGER = "AIDASTRANGER"
_PHASES = ("pending", "processing", "retrying", "succeeded", "failed", "paused", "canceled")


@dataclass
class Stranger:
    """Sends anything that it can think of to the queues of a mesh, by all that it may know of the tasks of others.

    Attributes:
        known_ids: ids of tasks, sets and origins.
        seen: bodies of messages of the mesh.
    """

    cloud: Cloud
    random: Random
    known_ids: Sequence[str]
    seen: Sequence[str]
    own_ids: list[str] = field(default_factory=list)

    def send(self) -> None:
        """Send one message to some queue."""
        queues = [name for name, queue in self.cloud.queues.queues.items() if queue.max_receives is not None]
        body = self.random.choice(
            (self._envelope, self._envelope, self._envelope, self._message_about_a_set, self._reports, self._copy)
        )()
        self.cloud.queues.send(self.random.choice(queues), body, sender=None, by=STRANGER)

    def _envelope(self) -> str:
        random, names = self.random, tuple(self.cloud.mesh.table.actors)
        members: dict[str, Any] = {
            "id": self._id(),
            "route": {
                "prev": random.choices(names, k=random.randint(0, 3)),
                "curr": random.choice((*names, "")),
                "next": random.choices(names, k=random.randint(0, 2)),
            },
            "headers": {name: value for name, value in self._headers().items() if random.random() < 0.4},
            "payload": {"trail": [f"stranger{random.randint(0, 99)}.0"]},
        }
        if random.random() < 0.3:
            members["parent_id"] = self._known()
        if random.random() < 0.8:
            members["status"] = self._status()
        if random.random() < 0.1:
            members[random.choice(("route", "status", "headers", "parent_id"))] = 7  # unreadable, but with its id
        return json.dumps(members)

    def _id(self) -> str:
        """Mostly an id of somebody else, in one of its spellings, or one that is derived from it."""
        known = self._known()
        own = f"own-{self.random.randint(0, 99)}"
        self.own_ids.append(own)
        return self.random.choice((known, known, known, known.upper(), f"{known}-1", f" {known}", own))

    def _known(self) -> str:
        return self.random.choice(self.known_ids)

    def _headers(self) -> dict[str, Any]:
        random, at = self.random, format_time(self.cloud.simulation.scheduler.now)
        slice_header = {
            "actor": random.choice(tuple(self.cloud.mesh.table.actors)),
            "set_id": self._known(),
            "origin_id": self._known(),
            "slice_index": random.randint(0, 3),
            "slice_count": random.randint(1, 4),
            "aggregation_key": "",
        }
        key = random.choice(("payloads/", "inbox/", "slices/", "paused/", "")) + self._known()
        return {
            "x-asya-generation": random.choice((1, 2, 9999, -1, "9")),
            "x-asya-root": self._known(),
            "x-asya-owner": "AIDAOPERATOR",
            "x-asya-fan-in": slice_header,
            "x-asya-pause": {"reason": "mine", "fields": []},
            "x-asya-resume-input": {},
            "x-asya-resume-at": at,
            "x-asya-hook": "hook",
            "x-asya-replay-of": self._known(),
            "x-asya-tool": "order",
            "x-asya-set-repeat": True,
            "x-asya-not-before": at,
            "x-asya-mesh-status": random.choice(("off", "on")),
            "x-asya-route-override": {
                name: random.choice(tuple(self.cloud.mesh.table.actors)) for name in ("prep", "infer")
            },
            "x-asya-payload-ref": {"key": key, "size": 3, "sha256": "0" * 64},
        }

    def _status(self) -> dict[str, Any]:
        at = format_time(self.cloud.simulation.scheduler.now)
        phase = self.random.choice(_PHASES)
        own = {"phase": phase, "actor": "infer", "created_at": at, "updated_at": at, "attempt": 1, "max_attempts": 1}
        own["reason"] = {"succeeded": "Completed", "canceled": "Canceled", "paused": "Paused"}.get(
            phase, "RuntimeError"
        )
        if phase == "failed":
            own["error"] = {"type": "Mine", "message": "mine"}
        return own

    def _message_about_a_set(self) -> str:
        random = self.random
        ended = {"type": "slice-ended", "set_id": self._known(), "slice_index": random.randint(0, 3), "slice_count": 3}
        ended |= {"actor": "x-fan-in", "origin_id": self._known(), "how": "failed", "phase": "failed", "error": None}
        return json.dumps(random.choice(({"type": "set-due", "set_id": self._known(), "until": 0.0}, ended)))

    def _reports(self) -> str:
        at = format_time(self.cloud.simulation.scheduler.now)
        phases = ("registered", "received", "processing", "completed", "succeeded", "failed", "canceled", "paused")
        event = {"id": self._known(), "status": self.random.choice(phases), "at": at, "actor": "infer", "position": 9}
        return json.dumps([event | {"generation": self.random.choice((0, 1, 9999)), "data": {"owner": STRANGER}}])

    def _copy(self) -> str:
        """A message of the mesh, perhaps changed."""
        body = self.random.choice(self.seen)
        return body.replace('"generation":0', '"generation":9') if self.random.random() < 0.5 else body
