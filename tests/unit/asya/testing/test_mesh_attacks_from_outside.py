"""Somebody who may send to the queue of one light actor, and call the gateway as a caller, tries to reach what is of others.

Each row is one attempt. All of them run beside tasks of Alice, of which nothing changes (`docs/security.md`, callers and queue
senders).
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from asya.protocol import ids
from asya.protocol.names import queue_name
from asya.testing import Mesh
from asya.testing.deployment import TEST_USER
from asya.testing.dynamo.tables import copied
from asya.testing.services.functions import ACCOUNT

MESH = """
namespace: bank
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

    def put(self, body: str, by: str = EVE) -> None:
        self.mesh.cloud.queues.send(queue_name("bank", "work"), body, sender=None, by=by)

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


HERS = ("alice-waits", "alice-failed", "alice-set")


def message(own_id: str, *, then: Iterable[str] = (), payload: Any = 1, **more: Any) -> str:
    return json.dumps({"id": own_id, "route": {"prev": [], "curr": "work", "next": [*then]}, "payload": payload} | more)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    path = tmp_path_factory.mktemp("bank")
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


@pytest.fixture(scope="module")
def before(bank: Bank) -> dict[str, Any]:
    return bank.of_alice()


# --- messages on the queue ---------------------------------------------------------------------------------------


def as_an_id_of_others(bank: Bank) -> Iterator[str]:
    for other in bank.ids:
        for own_id in (
            other,
            other.upper(),
            f"{other}-1",
            ids.child_id(other, 0, 1, 1),
            ids.hook_id(other, 0, "audit"),
        ):
            yield message(own_id, payload="forged")


def as_a_key_of_a_table(_: Bank) -> Iterator[str]:
    """IAM refuses x-sink the claim on such an end, and the envelope would lie on its queue as in an outage."""
    for key in (
        "KEY#",
        "KEY#work",
        "ROLE#AROAWORK",
        "ROLE#complete",
        "LETTER#a",
        "START#x-sink#1",
        "DLQ#1",
        "OUTAGE",
        "SWEEP",
    ):
        yield message(key)


MESSAGES: dict[str, Callable[[Bank], Iterable[str]]] = {
    "ids of others, and what derives from them": as_an_id_of_others,
    "keys of tables as ids": as_a_key_of_a_table,
}


@pytest.mark.rule("4.entry", "1.id.special")
@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_changes_nothing_of_others(bank: Bank, before: dict[str, Any], name: str) -> None:
    """Nothing stays on a queue, and the message of somebody else among them does its way."""
    for number, body in enumerate(MESSAGES[name](bank)):
        bank.put(body)
        if not number:
            bank.put(message(f"bob beside {name}", payload="his"), by=BOB)
    bank.mesh.cloud.run_until_idle()
    assert bank.left() == []
    assert bank.changed(before) == {}
    status, task = bank.call("GET", f"/api/v1/mesh/{quote(f'bob beside {name}')}", by="AIDATEST")
    assert (status, json.loads(task)["result"]) == (200, "his")
