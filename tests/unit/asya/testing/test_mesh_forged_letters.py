"""A dead letter was at the actor of its queue, whatever its sender has written (`protocol §4.keys.letters`)."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import pytest

from asya.protocol.headers import KEY
from asya.protocol.names import dlq_name, queue_name
from asya.tasks.view import TaskView
from asya.testing import Mesh, RefusedError
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


def put_letter(
    bank: Mesh,
    task: str,
    curr: str,
    then: list[str],
    place: str | None,
    phase: str,
    *,
    queue: str = dlq_name("bank", "eve"),
    prev: Sequence[str] = ("eve",),
) -> None:
    """Put a letter about a task that `eve` holds into a queue, as her code does into her own dead-letter queue."""
    (mine, *_) = bank.sent(task)
    key = json.loads(bytes(mine.headers[KEY]))
    status = {"phase": phase, "actor": place, "attempt": 1, "max_attempts": 1}
    body: dict[str, Any] = {
        "id": task,
        "route": {"prev": [*prev], "curr": curr, "next": then},
        "headers": {KEY: key, "x-asya-route-override": {"alias": "payout"}},
        "payload": {"amount": 666},
    }
    body |= {"status": status} if place is not None else {}
    bank.cloud.queues.send(queue, json.dumps(body), sender=None, by=role_id("eve"))


def replayed(bank: Mesh, task: str, user: str = "test") -> int:
    return call(bank, f"/api/v1/mesh/{task}/replay", {}, user)[0]


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


@pytest.mark.rule("4.keys.ends", "12.replay.place")
@pytest.mark.parametrize("end", ["x-sink", "x-sump"])
@pytest.mark.parametrize("where", PLACES, ids=str)
def test_a_forged_end_is_replayed_nowhere_else(bank: Mesh, where: tuple[str, list[str], str | None], end: str) -> None:
    """The owner replays what `eve` has made of the task, and an operator forces the replay."""
    bank.fail("eve", ConnectionError("again"))
    task = call(bank, "/tools/call", {"name": "begin", "arguments": {"amount": 1}})[1]["id"]
    put_letter(bank, task, *where, "failed", queue=queue_name("bank", end))
    bank.cloud.run_until_idle()
    for body in ({}, {"force": True}):
        call(bank, f"/api/v1/mesh/{task}/replay", body)
    replayed(bank, task)
    bank.cloud.run_until_idle()
    assert payments(bank) == []


@pytest.mark.rule("12.redrive.authority", "12.redrive.sender")
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("phase", ["pending", "failed"])
@pytest.mark.parametrize("where", PLACES, ids=str)
def test_a_forged_letter_is_redriven_nowhere_else(
    bank: Mesh, where: tuple[str, list[str], str | None], phase: str, force: bool
) -> None:
    """An operator redrives the letter, before and after the end that x-dlq has made of it."""
    bank.fail("eve", ConnectionError("again"))
    task = call(bank, "/tools/call", {"name": "begin", "arguments": {"amount": 1}})[1]["id"]
    put_letter(bank, task, *where, phase)
    for minutes in (0, 3):
        bank.travel(minutes=minutes)
        with suppress(RefusedError):
            bank.redrive("eve", force=force)
    assert payments(bank) == []


@pytest.mark.rule("4.keys.letters")
def test_a_true_letter_is_where_it_was(bank: Mesh) -> None:
    bank.kill_during("eve", times=20)
    task = call(bank, "/tools/call", {"name": "begin", "arguments": {"amount": 1}})[1]["id"]
    bank.travel(hours=2)
    bank.cloud.faults.interruptions.clear()
    assert call(bank, f"/api/v1/mesh/{task}/replay", {})[0] == 201


@pytest.mark.rule("4.keys.letters")
def test_a_letter_of_an_override_was_at_the_actor_in_its_place(bank: Mesh) -> None:
    """The gateway has written the name in the route into the status."""
    bank.kill_during("friend", times=20)
    task = bank.send("eve", {"amount": 1}, headers={"x-asya-route-override": {"eve": "friend"}}).id
    bank.travel(hours=2)
    bank.cloud.faults.interruptions.clear()
    assert bank.ask("GET", f"/api/v1/mesh/{task}", TaskView).actor == "friend"
    assert replayed(bank, task) == 201


@pytest.mark.rule("4.keys.letters", "12.replay.place")
@pytest.mark.parametrize(
    "status", [None, {"deadline_at": "2030-01-01T00:00:00Z"}, {"actor": "payout"}, {"actor": "eve"}], ids=str
)
@pytest.mark.parametrize("curr", ["eve", "payout"])
def test_a_letter_from_outside_was_at_the_actor_of_its_queue(
    bank: Mesh, curr: str, status: dict[str, Any] | None
) -> None:
    task = f"{curr} {status}".replace("{", "").replace("'", "")
    body = {"id": task, "route": {"prev": [], "curr": curr, "next": []}, "payload": {"amount": 666}}
    body |= {} if status is None else {"status": {"phase": "pending"} | status}
    bank.cloud.queues.send(dlq_name("bank", "eve"), json.dumps(body), sender=None, by="AIDABOB")
    bank.travel(minutes=3)
    assert bank.ask("GET", f"/api/v1/mesh/{quote(task)}", TaskView).actor == "eve"
    assert replayed(bank, quote(task)) == (201 if curr == "eve" else 403)
    assert payments(bank) == []


@pytest.mark.rule("4.keys.letters", "12.replay.place", "8.retry.days")
@pytest.mark.parametrize("curr", ["eve", "payout"])
def test_a_retry_that_died_at_x_wait_was_at_the_actor_that_has_sent_it(bank: Mesh, curr: str) -> None:
    bank.fail("eve", ConnectionError("again"))
    task = call(bank, "/tools/call", {"name": "begin", "arguments": {"amount": 1}})[1]["id"]
    put_letter(bank, task, curr, [], curr, "retrying", queue=dlq_name("bank", "x-wait"), prev=[])
    bank.travel(minutes=3)
    assert replayed(bank, task) == (201 if curr == "eve" else 403)
    bank.cloud.run_until_idle()
    assert payments(bank) == []
