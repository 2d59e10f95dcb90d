"""A letter that code of an actor puts into its dead-letter queue speaks for no other actor (`protocol §4.keys.letters`)."""

import json
from typing import Any

import pytest

from asya.protocol.headers import KEY
from asya.protocol.names import dlq_name
from asya.tasks.view import TaskView
from asya.testing import Mesh
from asya.testing.services.roles import role_id

MESH = """
namespace: bank
code: handlers
operators: ["arn:aws:iam::*:user/test"]
gateway: {starts: [prepare, eve]}
crew: {routable: [x-checkpoint]}
actors:
  prepare: {handler: bank.work}
  eve:
    handler: bank.work
    can_send_to: [approve, friend]
    resiliency: {policies: {default: {max_attempts: 2, initial_delay: 2d}}}
  friend: {handler: bank.work, can_send_to: [approve]}
  approve: {kind: pause, pause: {prompt: "Pay it?", fields: [{name: approved, type: boolean}]}}
  payout: {handler: bank.pay}
tools:
  pay: {description: Pays, route: [prepare, approve, payout]}
  begin: {description: Begins, route: [eve], timeout: 7d}
"""
HANDLERS = """
def work(payload):
    return payload

def pay(payload):
    return {"paid": payload["amount"]}
"""
ACCOUNT = "123456789012"
PLACES: list[tuple[str, list[str], str | None]] = [
    ("payout", [], "payout"),
    ("payout", [], None),
    ("friend", ["payout"], "friend"),
    ("approve", ["payout"], "approve"),
    ("x-checkpoint", ["payout"], "x-checkpoint"),
    ("x-resume", ["payout"], "x-resume"),
    ("x-pause", ["payout"], "x-pause"),
    ("alias", [], "payout"),
    ("payout", [], "eve"),
]


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    path = tmp_path_factory.mktemp("bank")
    (path / "handlers").mkdir()
    (path / "handlers" / "bank.py").write_text(HANDLERS)
    (path / "mesh.yaml").write_text(MESH)
    return Mesh(path / "mesh.yaml")


def put_letter(bank: Mesh, task: str, curr: str, then: list[str], place: str | None, phase: str) -> None:
    """Put a letter about a task that `eve` holds into her dead-letter queue."""
    (mine, *_) = bank.sent(task)
    key = json.loads(bytes(mine.headers[KEY]))
    status = {"phase": phase, "actor": place, "attempt": 1, "max_attempts": 1}
    body: dict[str, Any] = {
        "id": task,
        "route": {"prev": ["eve"], "curr": curr, "next": then},
        "headers": {KEY: key, "x-asya-route-override": {"alias": "payout"}},
        "payload": {"amount": 666},
    }
    body |= {"status": status} if place is not None else {}
    bank.cloud.queues.send(dlq_name("bank", "eve"), json.dumps(body), sender=None, by=role_id("eve"))


def call(bank: Mesh, path: str, body: Any, user: str = "bob") -> tuple[int, Any]:
    """Call the gateway as a caller who is no operator."""
    named, arn = {"prefer": "wait=0"}, f"arn:aws:iam::{ACCOUNT}:user/{user}"
    answer = bank.cloud.request("POST", path, json.dumps(body).encode(), named, user_arn=arn, user_id=user)
    bank.cloud.finish()
    return answer["statusCode"], json.loads(answer["body"])


def payments(bank: Mesh) -> list[str]:
    return [key for key, body in bank.objects.items() if b'"paid"' in body]


@pytest.mark.rule("4.keys.letters", "12.replay.place")
@pytest.mark.parametrize("phase", ["pending", "processing", "failed", "canceled"])
@pytest.mark.parametrize("where", PLACES, ids=str)
def test_a_forged_letter_ends_and_replays_its_task_where_it_was(
    bank: Mesh, where: tuple[str, list[str], str | None], phase: str
) -> None:
    """The task waits at `eve` for another attempt, and its owner replays what `eve` has made of it."""
    bank.fail("eve", ConnectionError("again"))
    task = call(bank, "/tools/call", {"name": "begin", "arguments": {"amount": 1}})[1]["id"]
    put_letter(bank, task, *where, phase)
    bank.travel(minutes=3)
    assert bank.ask("GET", f"/api/v1/mesh/{task}", TaskView).actor == "eve"
    for body in ({}, {"force": True}):
        assert call(bank, f"/api/v1/mesh/{task}/replay", body)[0] in (403, 409)
    bank.cloud.run_until_idle()
    assert payments(bank) == []


@pytest.mark.rule("4.keys.letters")
def test_a_true_letter_is_where_it_was(bank: Mesh) -> None:
    bank.kill_during("eve", times=20)
    task = call(bank, "/tools/call", {"name": "begin", "arguments": {"amount": 1}})[1]["id"]
    bank.travel(hours=2)
    bank.cloud.faults.interruptions.clear()
    assert call(bank, f"/api/v1/mesh/{task}/replay", {})[0] == 201
