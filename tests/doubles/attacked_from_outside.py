"""A bank that a caller of its gateway attacks, who may also send to the queue of one light actor.

Alice's tasks run beside the attempts and must not change (`docs/security.md`, callers and queue senders).
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from asya.protocol.names import queue_name
from asya.testing import Mesh
from asya.testing.deployment import TEST_USER
from asya.testing.dynamo.tables import copied
from asya.testing.services.functions import ACCOUNT

MESH = """
namespace: bank
crew: {routable: [x-checkpoint, x-fan-in, x-pause]}
code: handlers
operators: ["arn:aws:iam::*:user/test"]
gateway: {starts: [work]}
actors:
  work: {handler: bank.work, keep_input: true, can_send_to: [approve, nap, split]}
  split: {handler: bank.split, can_send_to: [work]}
  payout: {handler: bank.payout}
  approve:
    kind: pause
    can_send_to: [payout]
    pause: {prompt: "Pay it?", callback: true, fields: [{name: approved, type: boolean}], show: [/amount]}
  nap: {kind: wait, wait: {until: /until}}
tools:
  pay: {description: Pays, route: [work, approve, payout], input_schema: {type: object}}
"""


HANDLERS = """
from asya import fan_out

def work(payload):
    return payload

def split(payload):
    return fan_out(payload["items"], to=["work"], into="/sums")

def payout(payload):
    return {"paid": payload}
"""


ALICE, BOB, EVE = "AIDAALICE", "AIDABOB", "AIDAEVE"


USERS = {ALICE: f"arn:aws:iam::{ACCOUNT}:user/alice", EVE: f"arn:aws:iam::{ACCOUNT}:user/eve", "AIDATEST": TEST_USER}


UNKNOWN = "7d0b26a1-5ad5-4dd8-9d3f-0d6b0c0fbb6e"


Answer = tuple[int, str]


HERS = ("alice-waits", "alice-failed", "alice-set")


@dataclass(frozen=True)
class Bank:
    """The mesh, with tasks of Alice that are at rest: one is paused, one waits, one has failed, and one has fanned out.

    Attributes:
        paused: the id that the gateway gave out; she has chosen those of `HERS`.
    """

    mesh: Mesh
    paused: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.paused, *HERS)

    def call(self, method: str, path: str, body: Any = None, *, by: str = EVE, **headers: str) -> Answer:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.mesh.cloud.request(method, path, content, named, user_arn=USERS.get(by, ""), user_id=by)
        self.mesh.cloud.finish()
        return answer["statusCode"], answer.get("body") or ""

    def put(self, body: str, by: str = EVE, **more: Any) -> None:
        self.mesh.cloud.queues.send(queue_name("bank", "work"), body, sender=None, by=by, **more)

    def kept(self) -> dict[str, Any]:
        """All items of tables, and all objects, by their keys."""
        tables = self.mesh.cloud.tables.tables
        items = {f"{name} {key}": copied(item) for name, table in tables.items() for key, item in table.items.items()}
        return items | dict(self.mesh.objects)

    def of_alice(self) -> dict[str, Any]:
        """The items and objects that name her or one of her tasks."""
        named = (ALICE, *self.ids)
        return {key: value for key, value in self.kept().items() if any(name in f"{key} {value}" for name in named)}

    def changed(self, before: dict[str, Any]) -> dict[str, Any]:
        """What is now at the keys of things that have changed."""
        kept = self.kept()
        return {key: kept.get(key) for key, value in before.items() if kept.get(key) != value}

    def left(self) -> list[str]:
        """The messages that no function has taken, those in dead-letter queues included."""
        queues = self.mesh.cloud.queues.queues.values()
        return [f"{queue.name}: {message.body[:80]}" for queue in queues for message in queue.messages]


def message(own_id: str, *, curr: str = "work", then: Iterable[str] = (), payload: Any = 1, **more: Any) -> str:
    return json.dumps({"id": own_id, "route": {"prev": [], "curr": curr, "next": [*then]}, "payload": payload} | more)


def new_bank(path: Path) -> Bank:
    """Make the mesh, with the tasks of Alice."""
    (path / "handlers").mkdir()
    (path / "handlers" / "bank.py").write_text(HANDLERS)
    (path / "mesh.yaml").write_text(MESH)
    new = Bank(Mesh(path / "mesh.yaml"))
    call = {"name": "pay", "arguments": {"amount": 7}}
    status, answer = new.call("POST", "/tools/call", call, by=ALICE, prefer="wait=0")
    assert status == 202
    until = (new.mesh.now + timedelta(days=20)).isoformat()
    new.put(message("alice-waits", then=["nap"], payload={"until": until}), by=ALICE)
    new.put(message("alice-failed", then=["nowhere"]), by=ALICE)
    new.put(message("alice-set", then=["split", "x-fan-in"], payload={"items": [{"n": 1}, {"n": 2}]}), by=ALICE)
    new.mesh.travel(minutes=1)
    return Bank(new.mesh, json.loads(answer)["id"])


def check(bank: Bank, before: dict[str, Any], name: str, messages: Iterable[str]) -> None:
    """Send messages. Nothing stays on a queue, and the message of somebody else among them does its way."""
    for number, body in enumerate(messages):
        bank.put(body)
        if not number:
            bank.put(message(f"bob beside {name}", payload="his"), by=BOB)
    bank.mesh.cloud.run_until_idle()
    assert bank.left() == []
    assert bank.changed(before) == {}
    read = [key for key, value in bank.kept().items() if "known to Alice" in str(value) and "results/" in key]
    assert read == []
    status, task = bank.call("GET", f"/api/v1/mesh/{quote(f'bob beside {name}')}", by="AIDATEST")
    assert (status, json.loads(task)["result"]) == (200, "his")
