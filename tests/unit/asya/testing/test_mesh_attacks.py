"""Code of one light actor tries to reach tasks that it does not hold, by its key and its items of tables (`protocol §4.keys`)."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from asya.protocol import ids, task_key
from asya.protocol.envelope import NULL, Envelope, Route
from asya.protocol.headers import KEY
from asya.protocol.names import dlq_name, queue_name, table_name
from asya.protocol.task_key import Step
from asya.testing import Mesh
from asya.testing.errors import RefusedError
from asya.testing.run import Run
from asya.testing.services.roles import role_id

MESH = """
namespace: bank
crew: {routable: [x-checkpoint, x-fan-in, x-pause]}
code: handlers
actors:
  work: {handler: bank.work, can_send_to: [approve]}
  split: {handler: bank.split}
  intake: {handler: bank.work, can_send_to: [approve, work]}
  approve:
    kind: pause
    pause: {prompt: "Pay it?", fields: [{name: approved, type: boolean}]}
  nap: {kind: wait, wait: {for: 20m}}
  crunch: {spark: {job: bank.crunch}}
tools:
  pay: {description: Pays, route: [work, approve]}
"""
HANDLERS = """
from asya import fan_out

def work(payload):
    return payload

def split(payload):
    return fan_out(payload["items"], to=["nap"], into="/sums")
"""
FORGED = {"forged": True}
PENDING = {"phase": "pending", "actor": "intake", "attempt": 1, "max_attempts": 1}
Body = dict[str, Any]
Attempt = Callable[[Mesh, Run], Iterator[tuple[str, Body]]]


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    path = tmp_path_factory.mktemp("bank")
    (path / "handlers").mkdir()
    (path / "spark_jobs").mkdir()
    (path / "handlers" / "bank.py").write_text(HANDLERS)
    (path / "spark_jobs" / "bank.py").write_text("def crunch(spark, frame):\n    return frame\n")
    (path / "mesh.yaml").write_text(MESH)
    return Mesh(path / "mesh.yaml")


def put_as_intake(bank: Mesh, queue: str, body: Body) -> None:
    """Put a message on a queue with the role of `intake`."""
    name = dlq_name("bank", "intake") if queue == "intake-dlq" else queue_name("bank", queue)
    bank.cloud.queues.send(name, json.dumps(body), sender=None, by=role_id("intake"))


def claim(bank: Mesh, own_id: str) -> None:
    """Take an id and its numbered ids, as every actor may."""
    for sort, owner in (("owner", role_id("intake")), ("children", "0/0")):
        item = {"pk": {"S": f"OWNER#{own_id}"}, "sk": {"S": sort}, "owner": {"S": owner}}
        item |= {"entered_at": {"SS": ["intake"]}} if sort == "owner" else {}
        bank.cloud.tables.put_item(TableName=table_name("bank", "sink"), Item=item)


def key_of_entry(own_id: str, step: Step | None = None, *, parent_id: str | None = None, message: str = "m") -> Any:
    """The key of a message that enters at `intake`, or of a child of it, as the secret of the actor makes it."""
    secret = task_key.actor_secret(bytes(task_key.SECRET_BYTES), "intake")
    own = Envelope(id=own_id, parent_id=parent_id, route=Route((), "intake", ()), payload=NULL)
    entered = task_key.entered(own, secret, "intake", message)
    raw = entered.headers[KEY] if step is None else task_key.child_key(entered, step)
    return json.loads(bytes(raw or b"null"))


def envelope(own_id: str, curr: str, headers: Body, **more: Any) -> Body:
    route = {"prev": ["split", "nap"], "curr": curr, "next": more.pop("then", [])}
    return {"id": own_id, "route": route, "headers": headers, "payload": FORGED} | more


def place_in(bank: Mesh, run: Run, index: int) -> Body:
    """The header of a slice of another task's set."""
    (first, *_) = (sent for child in bank.children_of(run.id) for sent in bank.sent(child))
    return {"x-asya-fan-in": json.loads(bytes(first.headers["x-asya-fan-in"])) | {"slice_index": index}}


DOORS = ("x-sink", "x-sump", "approve", "x-pause", "x-checkpoint", "x-resume", "crunch", "intake-dlq")


def as_a_numbered_child(bank: Mesh, run: Run) -> Iterator[tuple[str, Body]]:
    """The id of a task is some text behind another id, so it would be a numbered child of that."""
    for end in (8, 13, 18, 23):
        stem, rest = run.id[:end], run.id[end + 1 :]
        claim(bank, stem)
        key = key_of_entry(stem, Step(stem, None, rest))
        for door in DOORS:
            phase = {"x-sink": "succeeded", "x-sump": "failed"}.get(door, "pending")
            own = {KEY: key}
            yield door, envelope(run.id, door, own, parent_id=stem, status=PENDING | {"phase": phase})


def as_a_child_that_enters(bank: Mesh, run: Run) -> Iterator[tuple[str, Body]]:
    """The secret of an actor vouches for what enters there, also for a parent."""
    for number, message in enumerate(("m", "7")):
        own_id = ids.id_of_message(message) if number else "mine-entered"
        claim(bank, own_id)
        for index in (1, 2):
            own = place_in(bank, run, index) | {KEY: key_of_entry(own_id, parent_id=run.id, message=message)}
            yield "x-fan-in", envelope(own_id, "x-fan-in", own, parent_id=run.id, status=PENDING)
            yield "x-sump", envelope(own_id, "", own, parent_id=run.id, status=PENDING | {"phase": "failed"})


def as_a_start(bank: Mesh, run: Run) -> Iterator[tuple[str, Body]]:
    """A message without a status and a key starts a task, so nothing shows that it belongs to another one."""
    for door in ("x-fan-in", "x-checkpoint", "x-resume", "approve", "x-pause", "crunch", "work", "intake-dlq"):
        for index in (1, 2):
            own = place_in(bank, run, index) | {"x-asya-root": run.id, "x-asya-generation": 0}
            curr = "intake" if door == "intake-dlq" else door
            then = [] if door == "x-fan-in" else ["x-fan-in"]
            yield door, envelope(f"mine-{door}-{index}", curr, own, parent_id=run.id, then=then)


ATTEMPTS: dict[str, tuple[Callable[[Mesh], Run], Attempt]] = {
    "a paused task as a numbered child": (lambda bank: bank.call("pay", {"amount": 1}), as_a_numbered_child),
    "a set by a child that enters": (lambda bank: bank.send("split", {"items": [1, 2]}), as_a_child_that_enters),
    "a set by the start of a task": (lambda bank: bank.send("split", {"items": [1, 2]}), as_a_start),
}


@pytest.mark.rule("4.keys.checked", "4.keys.child", "4.keys.entry", "4.keys.sets")
@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.slow
def test_an_attempt_changes_nothing_of_a_task(bank: Mesh, name: str) -> None:
    start, attempt = ATTEMPTS[name]
    run = start(bank)

    def shown() -> Any:
        task = bank.ask("GET", f"/api/v1/mesh/{run.id}", dict[str, Any])
        children = bank.ask("GET", f"/api/v1/mesh/{run.id}/children", dict[str, Any])
        return task, children, {key: body for key, body in bank.cloud.objects.items() if f"/{run.id}" in key}

    before = shown()
    for door, body in attempt(bank, run):
        put_as_intake(bank, door, body)
    bank.travel(minutes=2)  # x-dlq reads dead letters every minute
    assert shown() == before
    if run.status == "paused":
        bank.answer(run, approved=True)
    else:
        bank.travel(minutes=21)
    assert run.status == "succeeded"
    assert "forged" not in json.dumps(run.result)


@pytest.mark.rule("4.keys.checked", "4.entry.moved.unseen")
def test_a_forged_note_of_a_letter_spares_no_key(bank: Mesh) -> None:
    """Code of an actor notes the gateway as the first sender of a letter of somebody outside, and an operator redrives it."""
    run = bank.call("pay", {"amount": 2})
    body = json.dumps(envelope(run.id, "intake", {}, status=PENDING))
    note = {"pk": {"S": f"LETTER#intake#{hashlib.sha256(body.encode()).hexdigest()}"}, "sk": {"S": "sender"}}
    item = note | {"sender": {"S": role_id("x-gateway-api")}}
    bank.cloud.tables.put_item(TableName=table_name("bank", "sink"), Item=item)
    bank.cloud.queues.send(dlq_name("bank", "intake"), body, sender=None, by="AIDAACCOMPLICE")
    before = bank.ask("GET", f"/api/v1/mesh/{run.id}", dict[str, Any])
    bank.travel(minutes=2)
    assert bank.ask("GET", f"/api/v1/mesh/{run.id}", dict[str, Any]) == before
    with pytest.raises(RefusedError, match="may not speak for the task"):
        bank.redrive("intake")
    assert bank.ask("GET", f"/api/v1/mesh/{run.id}", dict[str, Any]) == before
    bank.answer(run, approved=True)
    assert run.status == "succeeded"
    assert "forged" not in json.dumps(run.result)
