"""Code of an actor ends, pauses, joins and advances no task that it does not hold (`protocol §4.keys`)."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from asya import registry
from asya.protocol import task_key
from asya.protocol.envelope import Envelope
from asya.protocol.headers import KEY
from asya.protocol.names import dlq_name, queue_name
from asya.senders.statements import Proof
from asya.testing import Mesh
from asya.testing.run import Run
from asya.testing.services.roles import role_id

MESH = """
namespace: bank
crew: {routable: [x-checkpoint, x-fan-in, x-pause]}
code: handlers
actors:
  work: {handler: bank.work, can_send_to: [approve, nap]}
  twice: {handler: bank.twice}
  split: {handler: bank.split}
  eve:
    handler: bank.work
    can_send_to: []
    resiliency: {policies: {default: {max_attempts: 2, initial_delay: 2d}}}
  crunch: {spark: {job: bank.crunch}}
  once: {handler: bank.work, deduplicate: true, frames: buffered}
  friend: {handler: bank.work, can_send_to: [once]}
  approve:
    kind: pause
    pause: {prompt: "Pay it?", fields: [{name: approved, type: boolean}]}
  nap: {kind: wait, wait: {for: 20m}}
tools:
  pay: {description: Pays, route: [work, approve]}
"""
HANDLERS = """
from asya import fan_out

def work(payload):
    return {**payload, "worked": True}

def twice(payload):
    yield payload
    yield {**payload, "child": True}

def split(payload):
    return fan_out(payload["items"], to=["nap"], into="/sums")
"""
FORGED = {"amount": 1_000_000, "forged": True}


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    tmp_path = tmp_path_factory.mktemp("bank")
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "bank.py").write_text(HANDLERS)
    (tmp_path / "spark_jobs").mkdir()
    (tmp_path / "spark_jobs" / "bank.py").write_text("def crunch(spark, frame):\n    return frame\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    return Mesh(tmp_path / "mesh.yaml")


def raw_task(bank: Mesh, then: list[str]) -> Run:
    """A task that a producer has started with an id of its own."""
    number = len(bank.cloud.history.sent)
    body = {"id": f"order-{number}", "route": {"prev": [], "curr": "work", "next": then}, "payload": {"amount": 1}}
    return bank.deliver("work", json.dumps(body))


def redriven_task(bank: Mesh) -> Run:
    """A task in generation 1, which waits."""
    bank.kill_during("work", times=5)
    run = bank.send("work", {"amount": 1}, then=["nap"])
    bank.travel(minutes=5)
    bank.redrive("work")
    return run


# The tasks of others, each at rest until the test lets it go on.
VICTIMS = {
    "finished": lambda bank: bank.send("work", {"amount": 1}),
    "finished raw": lambda bank: raw_task(bank, []),
    "paused": lambda bank: bank.send("work", {"amount": 1}, then=["approve"]),
    "paused raw": lambda bank: raw_task(bank, ["approve"]),
    "running": lambda bank: bank.send("work", {"amount": 1}, then=["nap"]),
    "running raw": lambda bank: raw_task(bank, ["nap"]),
    "child": lambda bank: bank.send("twice", {"amount": 1}, then=["nap"]).children[0],
    "redriven": redriven_task,
}


def keys_of_eve(bank: Mesh, victim: Envelope) -> dict[str, Any]:
    """All that code of `eve` can make up: it holds the key of a task of its own, and the secret of its actor."""
    own = bank.send("eve", {"amount": 2})
    (first, *_) = bank.sent(own.id)
    key = json.loads(bytes(first.headers[KEY]))
    child = task_key.child_key(first, task_key.Step(first.id, 0, 1))
    secret = task_key.actor_secret(bytes(task_key.SECRET_BYTES), "eve")
    entered = task_key.entered(victim, secret, "eve", "m-1").headers[KEY]
    return {
        "no key": None,
        "the key of its own task": key,
        "a key derived from its own task": json.loads(bytes(child or b"null")),
        "a key of its actor": json.loads(bytes(entered)),
        "a key of its actor for a message": json.loads(bytes(entered)) | {"message": "m-1"},
        "a made-up key": {"mac": "0" * 64},
        "the key of no mesh": json.loads(bytes(task_key.sealed(victim, b"guessed").headers[KEY])),
        "no object": "key",
    }


DOORS = [
    *(("x-sink", phase) for phase in ("succeeded", "failed", "canceled", "paused", "pending")),
    ("x-sump", "failed"),
    ("x-checkpoint", "pending"),
    ("x-resume", "pending"),
    ("x-pause", "pending"),
    ("approve", "pending"),
    ("nap", "pending"),
    ("x-wait", "pending"),
    ("crunch", "pending"),
    ("eve-dlq", "pending"),
    ("eve-dlq", "succeeded"),
]


def forged(victim: Envelope, actor: str, phase: str, key: Any) -> dict[str, Any]:
    """The envelope of a task as code of another actor makes it up."""
    headers = {name: json.loads(bytes(raw)) for name, raw in victim.headers.items() if name != KEY}
    return {
        "id": victim.id,
        "route": {"prev": [*victim.route.prev, "work"], "curr": actor, "next": []},
        "headers": headers | ({KEY: key} if key is not None else {}),
        "status": {"phase": phase, "actor": "work", "attempt": 1, "max_attempts": 1},
        "payload": FORGED,
    } | ({"parent_id": victim.parent_id} if victim.parent_id else {})


def put_as_eve(bank: Mesh, queue: str, body: Any) -> None:
    """Put a message on a queue with the role of `eve`."""
    name = dlq_name("bank", "eve") if queue == "eve-dlq" else queue_name("bank", queue)
    bank.cloud.queues.send(name, json.dumps(body), sender=None, by=role_id("eve"))


def shown(bank: Mesh, run: Run) -> Mapping[str, Any]:
    """All that the gateway shows of a task, and what is stored under its id."""
    task = bank.ask("GET", f"/api/v1/mesh/{run.id}", dict[str, Any])
    timeline = bank.ask("GET", f"/api/v1/mesh/{run.id}/timeline", dict[str, Any])
    kept = {key: body for key, body in bank.cloud.objects.items() if f"/{run.id}" in key}
    return {"task": task, "timeline": timeline, **kept}


def go_on(bank: Mesh, run: Run) -> Run:
    """Let a task run to its end."""
    if run.status == "paused":
        return bank.answer(run, approved=True)
    if run.status == "running":
        bank.travel(minutes=21)
    return run


@pytest.mark.rule("4.keys.checked", "4.statements")
def test_each_queue_where_a_key_counts_is_attacked(bank: Mesh) -> None:
    """The doors below, and those of the tests of reports and sets. x-index is a heavy actor as `crunch` is."""
    table = bank.cloud.table
    queues = {*table.actors, *registry.queues_of(table)} - {"x-index"}
    counts = {
        each for each in queues for said in registry.statements_at(each, table) if Proof.KEY in said.shown.values()
    }
    assert counts == {door for door, _ in DOORS if not door.endswith("-dlq")} | {"x-fan-in", "x-reports"}


@pytest.mark.rule("4.keys.checked")
@pytest.mark.parametrize("kind", VICTIMS)
@pytest.mark.slow
def test_a_forged_message_changes_nothing_of_a_task(bank: Mesh, kind: str) -> None:
    run = VICTIMS[kind](bank)
    victim = bank.sent(run.id)[-1]
    before = shown(bank, run)
    for key in keys_of_eve(bank, victim).values():
        for door, phase in DOORS:
            put_as_eve(bank, door, forged(victim, door, phase, key))
    bank.travel(minutes=2)  # x-dlq reads dead letters every minute
    assert shown(bank, run) == before
    ended = go_on(bank, run)
    assert (ended.status, ended.errors) == ("succeeded", ())
    assert "forged" not in json.dumps(ended.result)


@pytest.mark.rule("4.keys.checked")
def test_a_report_of_a_task_that_its_sender_does_not_hold_is_refused(bank: Mesh) -> None:
    run = bank.send("work", {"amount": 1}, then=["nap"])
    victim = bank.sent(run.id)[-1]
    before = shown(bank, run)
    at = bank.now.isoformat()
    route = {"prev": [*victim.route.prev, "nap"], "curr": "eve", "next": []}
    about = {"id": run.id, "at": at, "position": 7}
    for key in keys_of_eve(bank, victim).values():
        own = {} if key is None else {"key": key}
        progress = about | {"status": "completed", "data": {"actor": "eve", "route": route}} | own
        partial = about | {"type": "fly", "actor": "eve", "data": {"text": "forged"}} | own
        put_as_eve(bank, "x-reports", [progress, partial])
    bank.travel(minutes=2)
    assert shown(bank, run) == before
    assert bank.partials_of(run.id) == []
    refused = [
        body for key, body in bank.objects.items() if key.startswith("reports/refused/") and run.id.encode() in body
    ]
    assert len(refused) == 8
    assert b'"mac"' not in b"".join(refused)


@pytest.mark.rule("4.keys.sets")
@pytest.mark.parametrize("door", ["x-fan-in", "x-sink", "x-sump", "eve-dlq"])
@pytest.mark.slow
def test_an_envelope_belongs_to_no_set_of_another_task(bank: Mesh, door: str) -> None:
    run = bank.send("split", {"items": [1, 2]})
    (first, *_) = (sent for child in bank.children_of(run.id) for sent in bank.sent(child))
    own = bank.send("eve", {"amount": 2})
    (mine, *_) = bank.sent(own.id)
    key = json.loads(bytes(mine.headers[KEY]))
    header = json.loads(bytes(first.headers["x-asya-fan-in"]))
    for index, origin in ((1, own.id), (2, run.id), (0, own.id)):
        body = forged(mine, door.replace("eve-dlq", "eve"), "failed" if door != "x-fan-in" else "pending", key)
        body["headers"]["x-asya-fan-in"] = header | {"slice_index": index, "origin_id": origin}
        put_as_eve(bank, door, body)
    bank.travel(minutes=2)
    assert run.status == "running"
    bank.travel(minutes=21)
    assert run.result == {"items": [1, 2], "sums": [1, 2]}


@pytest.mark.rule("4.keys.marks")
def test_a_forged_envelope_at_a_target_leaves_the_true_one_alone(bank: Mesh) -> None:
    body = {"id": "order-once", "route": {"prev": ["friend"], "curr": "once", "next": []}, "payload": {"amount": 1}}
    status = {"phase": "pending", "actor": "once", "attempt": 1, "max_attempts": 1}
    forged_body = body | {"status": status, "payload": FORGED}
    bank.cloud.queues.send(queue_name("bank", "once"), json.dumps(forged_body), sender=None, by=role_id("friend"))
    bank.travel(seconds=1)
    first = body | {"route": {"prev": [], "curr": "friend", "next": ["once"]}}
    run = bank.deliver("friend", json.dumps(first))
    assert (run.status, run.result) == ("succeeded", {"amount": 1, "worked": True})


@pytest.mark.rule("4.keys.stored")
@pytest.mark.slow
def test_nothing_that_is_stored_or_shown_has_a_key(bank: Mesh) -> None:
    runs = [go_on(bank, start(bank)) for start in VICTIMS.values()]
    put_as_eve(bank, "x-sink", {"no": "envelope"})
    bank.travel(minutes=2)
    keys = [
        json.loads(bytes(sent.headers[KEY]))["mac"] for run in runs for sent in bank.sent(run.id) if KEY in sent.headers
    ]
    assert keys
    told = str([*bank.log, *(shown(bank, run) for run in runs)])
    assert [key for key in keys if key in told] == []
    assert [key for key, body in bank.objects.items() if b'"mac"' in body] == []
    tables = bank.cloud.tables.tables
    assert [item for table in tables.values() for item in table.items.values() if '"mac"' in str(item)] == []
