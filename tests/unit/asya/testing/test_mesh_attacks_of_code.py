"""What code of one light actor has tried against tasks of others, from its role and from what it holds (`docs/security.md`).

Each attempt is a row. What job code may write is in `tests/unit/asya/heavy`: results, manifests and files of its run.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.protocol import ids, names, task_key
from asya.protocol.envelope import NULL, Envelope, Route
from asya.protocol.headers import KEY
from asya.protocol.names import dlq_name, queue_name, table_name
from asya.protocol.pause import TaskPause
from asya.protocol.table_keys import TOKENS_KEY
from asya.protocol.task_key import Step
from asya.protocol.times import format_time
from asya.tasks.view import TaskView
from asya.testing import Mesh
from asya.testing.deployment import TEST_USER
from asya.testing.errors import RefusedError
from asya.testing.permissions import of_items, of_objects, of_queues
from asya.testing.run import Run
from asya.testing.services.roles import role_id
from asya_infra.addresses import Addresses

MESH = """
namespace: bank
crew: {routable: [x-checkpoint, x-fan-in, x-pause]}
code: handlers
actors:
  work: {handler: bank.work, can_send_to: [approve, nap], keep_input: true}
  split: {handler: bank.split}
  eve:
    handler: bank.work
    can_send_to: []
    keep_input: true
    resiliency: {policies: {default: {max_attempts: 2, initial_delay: 2d}}}
  helper: {handler: bank.work, can_send_to: [nap, stand, split, work]}
  approve: {kind: pause, pause: {prompt: "Pay it?", fields: [{name: approved, type: boolean}]}}
  nap: {kind: wait, wait: {for: 5d}}
  stand: {kind: wait, wait: {for: 5d, deadline: stands}}
  gather: {kind: fan_in, fan_in: {timeout: 1h, on_failure: partial}}
  crunch: {spark: {job: bank.crunch}}
tools:
  pay: {description: Pays, route: [work, approve]}
"""
HANDLERS = """
from asya import fan_out

def work(payload):
    return payload

def split(payload):
    return fan_out(payload["items"], to=["helper", "nap"], into="/sums")
"""
FORGED = {"forged": True}
CLAIMS = table_name("bank", "sink")
Body = dict[str, Any]
_numbers = count()


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    return new_bank(tmp_path_factory.mktemp("bank"))


def new_bank(path: Path) -> Mesh:
    (path / "handlers").mkdir()
    (path / "spark_jobs").mkdir()
    (path / "handlers" / "bank.py").write_text(HANDLERS)
    (path / "spark_jobs" / "bank.py").write_text("def crunch(spark, frame):\n    return frame\n")
    (path / "mesh.yaml").write_text(MESH)
    return Mesh(path / "mesh.yaml")


def put(bank: Mesh, queue: str, body: Any, by: str = "eve", **more: Any) -> None:
    """Put a message on a queue with the role of an actor."""
    actor, is_dlq = queue.removesuffix("-dlq"), queue.endswith("-dlq")
    name = dlq_name("bank", actor) if is_dlq else queue_name("bank", queue)
    text = body if isinstance(body, str) else json.dumps(body)
    bank.cloud.queues.send(name, text, sender=None, by=role_id(by), **more)


def addresses(bank: Mesh) -> Addresses:
    return bank.cloud.permissions.addresses


def write(bank: Mesh, pk: str, sk: str, **attributes: Body) -> None:
    """Write an item of the table of claims, as the role of each actor may write this one."""
    item = {"pk": {"S": pk}, "sk": {"S": sk}} | attributes
    bank.cloud.permissions.check("eve", of_items("update_item", {"TableName": CLAIMS, "Key": item}, addresses(bank)))
    bank.cloud.tables.put_item(TableName=CLAIMS, Item=item)


def headers_of(envelope: Envelope) -> Body:
    return {name: json.loads(bytes(raw)) for name, raw in envelope.headers.items()}


def body_of(envelope: Envelope, curr: str, phase: str = "pending", **headers: Any) -> Body:
    """An envelope that was held, as its holder sends it on to another queue."""
    parent = {"parent_id": envelope.parent_id} if envelope.parent_id else {}
    return parent | {
        "id": envelope.id,
        "route": {"prev": [*envelope.route.prev, envelope.route.curr], "curr": curr, "next": []},
        "headers": headers_of(envelope) | headers,
        "payload": FORGED,
        "status": {"phase": phase, "actor": "eve", "attempt": 2, "max_attempts": 2},
    }


def held(bank: Mesh) -> Envelope:
    """An envelope of a task of its own, with its key."""
    return bank.sent(bank.send("eve", {"amount": 2}).id)[0]


def paid(bank: Mesh) -> Run:
    return bank.call("pay", {"amount": 1})


def sums(bank: Mesh) -> Run:
    return bank.send("split", {"items": [1, 2]})


def first_slice(bank: Mesh, run: Run) -> Envelope:
    """Slice 1 of a set. The sender holds no other slice."""
    sent = (bank.sent(child)[-1] for child in bank.children_of(run.id))
    return next(each for each in sent if headers_of(each)["x-asya-fan-in"]["slice_index"] == 1)


def redriven(bank: Mesh) -> Run:
    """A task that `helper` has held, and that an operator has redriven from another actor since."""
    bank.kill_during("work", times=5)
    run = bank.send("helper", {"amount": 1}, then=["work", "nap"])
    bank.travel(minutes=3)
    bank.redrive("work")
    assert run.status == "running"
    return run


def as_another_slice(bank: Mesh, run: Run) -> None:
    mine = first_slice(bank, run)
    place = headers_of(mine)["x-asya-fan-in"]
    for change in (
        {"slice_index": 2},
        {"slice_count": 2},
        {"actor": "gather"},
        {"slice_index": 0, "origin_id": mine.id},
    ):
        for door, phase in (("x-fan-in", "pending"), ("gather", "pending"), ("x-sink", "failed"), ("x-sump", "failed")):
            put(bank, door, body_of(mine, door, phase, **{"x-asya-fan-in": place | change}), by="helper")


def as_an_unreadable_slice(bank: Mesh, run: Run) -> None:
    place = headers_of(first_slice(bank, run))["x-asya-fan-in"]
    mine = held(bank)
    broken: list[Body] = [
        {"route": 5},
        {"status": {"phase": "failed", "deadline_at": "x"}},
        {"id": ""},
        {"payload": None},
    ]
    for door in ("x-sink", "x-sump", "x-fan-in", "x-checkpoint", "x-wait", "eve", "eve-dlq"):
        for index, change in enumerate(broken):
            reference = {"x-asya-payload-ref": {"key": "payloads/none", "size": 1, "sha256": "z"}} if index == 3 else {}
            header = {"x-asya-fan-in": place | {"slice_index": index % 3}, "x-asya-root": run.id} | reference
            put(bank, door, body_of(mine, door, "failed", **header) | {"parent_id": run.id} | change)


def as_sent_by_the_gateway(bank: Mesh, run: Run) -> None:
    last = bank.sent(run.id)[-1]
    for first in ("x-gateway-api", "x-sink", "x-pause-sweep"):
        attribute = {"asya-first-sender": {"DataType": "String", "StringValue": role_id(first)}}
        for door, phase in (("x-sink", "failed"), ("x-sump", "failed"), ("x-resume", "pending"), ("eve-dlq", "failed")):
            body = body_of(last, door, phase)
            body["headers"].pop(KEY, None)
            put(bank, door, body, attributes=attribute)


def as_a_retry_of_another_actor(bank: Mesh, _run: Run) -> None:
    mine = held(bank)
    for target in ("work", "approve", "x-checkpoint"):
        due = {"x-asya-wait": {"since": bank.now.isoformat(), "until": bank.now.isoformat()}}
        for more in ({}, due):
            put(bank, "x-wait", body_of(mine, "eve", "retrying", **{"x-asya-route-override": {"eve": target}}, **more))
    bank.travel(minutes=2)
    assert {sent.route.curr for sent in bank.sent(mine.id)} <= {"eve", ""}


def as_an_earlier_holder(bank: Mesh, run: Run) -> None:
    mine = bank.sent(run.id)[1]  # that of `helper`, which has the key of generation 0
    assert "x-asya-generation" not in mine.headers
    for door, phase in (("x-sink", "failed"), ("x-sump", "failed"), ("x-checkpoint", "pending"), ("nap", "pending")):
        put(bank, door, body_of(mine, door, phase, **{"x-asya-generation": 1}), by="helper")
    put(bank, "nap", body_of(mine, "nap"), by="helper")
    put(bank, "helper-dlq", body_of(mine, "helper"), by="helper")
    bank.travel(minutes=2)
    with pytest.raises(RefusedError, match="another dead letter of it was redriven"):
        bank.redrive("helper")


def as_a_note_of_an_outage(bank: Mesh, _run: Run) -> None:
    for note in ({"S": "x"}, {"M": {"since": {"N": "1"}, "until": {"N": "1e120"}, "cause": {"S": "x"}}}):
        write(bank, "OUTAGE", "outage", DynamoDB=note, S3=note)


def as_claims_of_another_form(bank: Mesh, _run: Run) -> None:
    secret = task_key.actor_secret(bytes(task_key.SECRET_BYTES), "eve")
    own = Envelope(id="mine-broken", route=Route((), "eve", ()), payload=NULL)
    entered = task_key.entered(own, secret, "eve", "m")
    for sort in ("owner", "children"):
        write(bank, "OWNER#mine-broken", sort, owner={"N": "1"}, entered_at={"S": "eve"})
    child = task_key.child_key(entered, Step(own.id, None, 1))
    for door in ("x-sink", "x-sump", "x-fan-in", "x-checkpoint", "x-resume", "eve-dlq"):
        put(bank, door, body_of(entered, door, "failed"))
        numbered = body_of(entered, door, "failed", **{KEY: json.loads(bytes(child or b"null"))})
        put(bank, door, numbered | {"id": "mine-broken-1", "parent_id": own.id})
        put(bank, door, {"id": own.id, "route": {"prev": [], "curr": door, "next": []}, "payload": 1})


def as_progress_of_an_end(bank: Mesh, run: Run) -> None:
    """A report of progress that has the fields of an end, a pause and a start, about its own task and a child of it."""
    mine, route = held(bank), {"prev": [], "curr": "eve", "next": []}
    step = Step(mine.id, 0, 1)
    child = json.loads(bytes(task_key.child_key(mine, step) or b"null"))
    data = {"actor": "eve", "route": route, "result": FORGED, "result_uri": f"s3://b/results/succeeded/{run.id}.json"}
    data |= {"prompt": "?", "callback": "https://eve", "provisional": True, "set_id": "other"}
    own = {"id": mine.id, "key": headers_of(mine)[KEY]}
    descendant = {"id": step.child_id(0), "key": child, "parent_id": mine.id, "root_id": run.id}
    about = {"at": bank.now.isoformat(), "status": "processing", "position": 5, "data": data}
    put(bank, "x-reports", [about | own, about | own | {"status": "registered"}, about | descendant])
    bank.travel(minutes=1)
    for each in (mine.id, step.child_id(0)):
        shown = bank.ask("GET", f"/api/v1/mesh/{each}", dict[str, Any])
        assert (run.id in str(shown.get("result_uri")), shown.get("result")) in ((False, {"amount": 2}), (False, None))


def unstarted(bank: Mesh) -> Envelope:
    """The first envelope of a task that no message has started, as code makes it with the claim and the secret of its actor."""
    own = Envelope(id=f"unstarted-{next(_numbers)}", route=Route((), "eve", ()), payload=NULL)
    write(bank, f"OWNER#{own.id}", "owner", owner={"S": "AROAEVE"}, entered_at={"SS": ["eve"]})
    return task_key.entered(own, task_key.actor_secret(bytes(task_key.SECRET_BYTES), "eve"), "eve", "m")


def as_ends_that_cannot_be_stored(bank: Mesh, _run: Run) -> None:
    """S3 refuses metadata and keys that are too long, and gives nobody the payload that its writer has sealed."""
    content = b'{"amount":3}'
    digest, objects = hashlib.sha256(content).hexdigest(), bank.cloud.bucket
    doors = {"x-sink": "succeeded", "x-sump": "failed", "helper": "pending", "x-checkpoint": "pending"}
    names = [name("bank", door) for door in doors for name in (queue_name, dlq_name)]
    before = {name: len(bank.cloud.queues.queues[name].messages) for name in names}
    for door, phase in doors.items():
        for long in ("A" * 16_000, "\U0001f600" * 60):
            for route in ({"prev": [long], "curr": "", "next": []}, {"prev": [], "curr": long, "next": []}):
                put(bank, door, body_of(unstarted(bank), door, phase) | {"route": route})
        for error in (("InvalidObjectState", None), ("InvalidRequest", "400")):
            key = f"payloads/{door}/{digest[:2]}/{digest}.json"
            objects.objects[key], objects.sealed[key] = content, error
            reference = {"x-asya-payload-ref": {"key": key, "size": len(content), "sha256": digest}}
            put(bank, door, body_of(unstarted(bank), door, phase, **reference) | {"payload": None})
    bank.travel(minutes=1)
    assert {name: len(bank.cloud.queues.queues[name].messages) for name in names} == before


def as_an_envelope_with_two_ids(bank: Mesh, run: Run) -> None:
    """Whoever checks the key, and whoever stores the end, read the same one."""
    for door, phase in (("x-sink", "failed"), ("x-sump", "failed"), ("x-checkpoint", "pending"), ("eve-dlq", "failed")):
        mine = json.dumps(body_of(held(bank), door, phase))
        for name in ("id", "job_id", "ID", "parent_id"):
            other = f'"{name}": {json.dumps(run.id)}'
            put(bank, door, f"{{{other}, {mine[1:]}")
            put(bank, door, f"{mine[:-1]}, {other}}}")
    mine = held(bank)
    data = {"actor": "eve", "route": {"prev": [], "curr": "forged", "next": []}}
    report = {
        "at": bank.now.isoformat(),
        "status": "processing",
        "position": 5,
        "data": data,
        "key": headers_of(mine)[KEY],
    }
    for first, last in ((run.id, mine.id), (mine.id, run.id)):
        put(bank, "x-reports", f'[{{"id": "{first}", "id": "{last}", {json.dumps(report)[1:]}]')
    bank.travel(minutes=1)


def as_a_child_of_its_own(bank: Mesh, run: Run) -> None:
    """A child of its own task, with the root and the owner of another one."""
    mine = held(bank)
    route = {"prev": ["eve"], "curr": "eve", "next": []}
    for index in range(1, 4):
        step = Step(mine.id, 0, index)
        key = json.loads(bytes(task_key.child_key(mine, step) or b"null"))
        data = {"actor": "eve", "route": route, "owner": "trigger:pay", "set_id": run.id}
        report = {"id": step.child_id(0), "at": bank.now.isoformat(), "position": 1, "data": data, "key": key}
        partial = {"type": "fly", "actor": "eve", "data": FORGED, "sequence": index}
        for parent in (mine.id, run.id):
            of = {"parent_id": parent, "root_id": run.id}
            put(bank, "x-reports", [report | of | {"status": "processing"}, report | of | partial])
        put(bank, "x-reports", [report | {"id": run.id, "status": "processing"}, report | {"id": run.id} | partial])
        child = {"id": step.child_id(0), "parent_id": mine.id}
        headers = {KEY: key, "x-asya-root": run.id, "x-asya-owner": "trigger:pay", "x-asya-tool": "pay"}
        put(bank, "x-sink", body_of(mine, "x-sink", "failed", **headers) | child)
    bank.travel(minutes=1)
    assert bank.ask("GET", f"/api/v1/mesh/{run.id}/children", dict[str, Any])["items"] == []


def as_values_that_grow(bank: Mesh, _run: Run) -> None:
    """Lists that lie deep, and pointers that lead deep."""
    mine = held(bank)
    zeros = f"{'[' * 800}{','.join('0' * 5_000)}{']' * 800}"
    for door, phase in (("x-checkpoint", "pending"), ("x-sump", "failed")):
        body = body_of(unstarted(bank), door, phase)
        put(bank, door, json.dumps(body | {"payload": "zeros"}).replace('"zeros"', zeros))
        bank.travel(minutes=1)
        kept = [len(text) for key, text in bank.cloud.objects.items() if f"/{body['id']}" in key]
        assert 10_000 < max(kept) < 100_000
    place = {"actor": "x-fan-in", "set_id": ids.set_id(mine.id, 0, 0), "origin_id": mine.id, "slice_index": 0}
    place |= {"slice_count": 1, "aggregation_key": "/a" * 20_000}
    put(bank, "x-fan-in", body_of(mine, "x-fan-in", **{"x-asya-fan-in": place}))
    bank.travel(minutes=1)


FAR = {"since": "0001-01-01T00:00:00+14:00", "until": "9999-12-31T23:59:59-14:00"}
ODD_HEADERS: tuple[Body, ...] = (
    {f"h{index}": "x" for index in range(2_000)},
    {"x-asya-route-override": {f"a{index}": f"a{index + 1}" for index in range(2_000)}},
    {"x-asya-route-override": {"x-sink": "x-checkpoint", "x-checkpoint": "x-resume", "x-resume": "x-checkpoint"}},
    {"x-asya-wait": FAR, "x-asya-not-before": FAR["until"], "x-asya-first-attempt": FAR["since"]},
    {"x-asya-pause": {"epoch": 10**30, "paused_at": FAR["until"], "prompt": "?", "fields": "x", "remaining": 1e308}},
    {
        "x-asya-resume-input": {"approved": True},
        "x-asya-resume-at": FAR["since"],
        "x-asya-circuit-open-since": FAR["since"],
    },
    {"traceparent": f"00-{'0' * 32}-{'0' * 16}-ff", "tracestate": "a=" * 20_000, "x-asya-generation": 9_999},
    {"x-asya-gateway-url": "http://169.254.169.254/latest", "x-asya-hook": "work", "x-asya-set-repeat": True},
)
ODD_VALUES: tuple[tuple[str, str], ...] = (
    ('"payload": {"forged": true}', f'"payload": {"[" * 900}{"1" * 100}{"]" * 900}'),
    ('"payload": {"forged": true}', f'"payload": {"9" * 100_000}'),
    ('"payload": {"forged": true}', f'"payload": 1e{"9" * 10_000}'),
    ('"payload": {"forged": true}', '"payload": "\\ud800"'),
    ('"prev": ["eve"]', f'"prev": {json.dumps(["eve"] * 3_000)}'),
    ('"next": []', f'"next": {json.dumps(["a" * 100_000])}'),
    ('"attempt": 2', f'"attempt": {10**30}'),
    ('"attempt": 2', '"attempt": 2, "created_at": "0001-01-01T00:00:00+14:00"'),
    ('"attempt": 2', '"attempt": 2, "deadline_at": "9999-12-31T23:59:59-14:00"'),
)


def as_messages_of_odd_forms(bank: Mesh, _run: Run) -> None:
    """Each is handled, or kept by x-sump: none stays on the queue of a function of the mesh, or becomes its dead letter."""
    doors = {
        "x-sink": "failed",
        "x-sump": "failed",
        "x-checkpoint": "pending",
        "x-resume": "pending",
        "x-fan-in": "pending",
    }
    names = [name("bank", door) for door in doors for name in (queue_name, dlq_name)]
    before = {name: len(bank.cloud.queues.queues[name].messages) for name in names}
    for door, phase in doors.items():
        for odd in ODD_HEADERS:
            put(bank, door, body_of(unstarted(bank), door, phase, **odd))
        for found, instead in ODD_VALUES:
            text = json.dumps(body_of(unstarted(bank), door, phase))
            assert found in text
            put(bank, door, text.replace(found, instead, 1))
    bank.travel(minutes=1)
    assert {name: len(bank.cloud.queues.queues[name].messages) for name in names} == before


@dataclass(frozen=True)
class Attempt:
    """What code tries, about which task of others. The task then goes on as if nothing had been."""

    about: Callable[[Mesh], Run]
    act: Callable[[Mesh, Run], None]
    result: Any


ATTEMPTS = {
    "the slices beside the one that it holds": Attempt(sums, as_another_slice, {"items": [1, 2], "sums": [1, 2]}),
    "a set, by what is no envelope": Attempt(sums, as_an_unreadable_slice, {"items": [1, 2], "sums": [1, 2]}),
    "a letter of the gateway, by an attribute": Attempt(paid, as_sent_by_the_gateway, {"amount": 1, "approved": True}),
    "a retry that leads elsewhere": Attempt(paid, as_a_retry_of_another_actor, {"amount": 1, "approved": True}),
    "a task of an earlier generation": Attempt(redriven, as_an_earlier_holder, {"amount": 1}),
    "a note of an outage of another form": Attempt(sums, as_a_note_of_an_outage, {"items": [1, 2], "sums": [1, 2]}),
    "claims of another form": Attempt(paid, as_claims_of_another_form, {"amount": 1, "approved": True}),
    "ends that cannot be stored": Attempt(sums, as_ends_that_cannot_be_stored, {"items": [1, 2], "sums": [1, 2]}),
    "an envelope with two ids": Attempt(paid, as_an_envelope_with_two_ids, {"amount": 1, "approved": True}),
    "a child with the root of another": Attempt(paid, as_a_child_of_its_own, {"amount": 1, "approved": True}),
    "messages of odd forms": Attempt(sums, as_messages_of_odd_forms, {"items": [1, 2], "sums": [1, 2]}),
    "values that grow": Attempt(sums, as_values_that_grow, {"items": [1, 2], "sums": [1, 2]}),
    "an end as progress": Attempt(paid, as_progress_of_an_end, {"amount": 1, "approved": True}),
}


@pytest.mark.rule("4.keys.checked", "4.keys.sets", "4.statements.refused", "4.outage.named", "4.entry.claim")
@pytest.mark.rule("4.claim-check.bad-reference", "11.metadata", "12.refused")
@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.slow
def test_an_attempt_changes_nothing_of_a_task(bank: Mesh, name: str) -> None:
    attempt = ATTEMPTS[name]
    run = attempt.about(bank)

    def shown() -> Mapping[str, Any]:
        task = bank.ask("GET", f"/api/v1/mesh/{run.id}", dict[str, Any])
        earlier = ("dlq/", f"results/superseded/{run.id}/0/", f"waiting/{run.id}/0/2-")  # kept, and counts for nothing
        kept = {key: body for key, body in bank.cloud.objects.items() if f"/{run.id}" in key}
        return {"task": task} | {key: body for key, body in kept.items() if not key.startswith(earlier)}

    before = shown()
    attempt.act(bank, run)
    bank.travel(minutes=2)  # x-dlq reads dead letters every minute
    assert shown() == before
    if run.status == "paused":
        bank.answer(run, approved=True)
    elif run.status == "running":
        bank.travel(days=5, minutes=1)
    assert (run.status, run.result) == ("succeeded", attempt.result)


@pytest.mark.rule("4.keys.ends")
@pytest.mark.parametrize("named", ["work", "x-dlq", "nobody", "", None])
@pytest.mark.parametrize(("door", "phase"), [("x-sink", "failed"), ("x-sink", "succeeded"), ("x-sump", "failed")])
def test_an_end_is_that_of_the_actor_that_says_it(bank: Mesh, door: str, phase: str, named: str | None) -> None:
    """Else another actor has a failure that it does not know: in lists, in its numbers and in its alarms."""
    body = body_of(unstarted(bank), door, phase)
    body["status"] |= {"actor": named}
    put(bank, door, body)
    bank.travel(minutes=1)
    task = bank.ask("GET", f"/api/v1/mesh/{body['id']}", dict[str, Any])
    assert (task["status"], task["actor"]) == (phase, "eve")


def keep(bank: Mesh, key: str, content: Body | bytes) -> None:
    """Write an object with the role of `eve`."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    requests = of_objects("put_object", {"Key": key, "Body": body}, addresses(bank))
    bank.cloud.permissions.check("eve", requests)
    bank.cloud.bucket.objects[key] = body


def kept_hops(bank: Mesh, run: Run) -> list[tuple[int, str]]:
    items = bank.ask("GET", f"/api/v1/mesh/{run.id}/payloads", dict[str, Any])["items"]
    return [(each["hop"], each["actor"]) for each in items if each.get("copy") == "input"]


KEPT_AS = ("{id}/0/{at}", "{id}/0/{at}.work", "{id}/0/{at}.x-eve", "{id}/0/{at}.approve", "{id}/1/{at}.crunch")


@pytest.mark.rule("12.input.writers")
@pytest.mark.parametrize("name", [*KEPT_AS, "{id}.eve/0/{at}", "{id}/0/{at}.eve.work", "{id}/0/eve/{at}"])
def test_an_input_of_another_actor_is_not_written(bank: Mesh, name: str) -> None:
    run = paid(bank)
    for at in (0, 1, 2):
        with pytest.raises(ClientError, match="not authorized"):
            keep(bank, f"hops/{name.format(id=run.id, at=at)}.json", b"{}")


@pytest.mark.rule("12.input.counts", "12.input.writers", "13.payloads.actors")
@pytest.mark.parametrize("generation", [0, 1, 9_999])
@pytest.mark.parametrize("payload", [FORGED, None], ids=["with a payload", "with a reference"])
def test_an_input_of_a_task_that_its_actor_never_had_starts_nothing(
    bank: Mesh, generation: int, payload: Body | None
) -> None:
    """Else a replay, which its owner asks for, starts at an actor and with a payload that code of another one has chosen."""
    run = paid(bank)
    before = kept_hops(bank, run)
    assert before == [(0, "work")]
    digest = hashlib.sha256(b'{"card":4711}').hexdigest()
    stolen = {
        "x-asya-payload-ref": {"key": f"payloads/crunch/{digest[:2]}/{digest}.json", "size": 13, "sha256": digest}
    }
    prev = ["work", "approve", "work"]
    for at in (0, 1, 2, 3):
        for curr, override in (("eve", {}), ("crunch", {}), ("work", {"work": "eve"}), ("eve", {"eve": "crunch"})):
            headers = {"x-asya-route-override": override, "x-asya-generation": generation}
            route = {"prev": prev[:at], "curr": curr, "next": ["crunch"]}
            body = {"id": run.id, "route": route, "payload": payload, "headers": headers | ({} if payload else stolen)}
            keep(bank, f"hops/{run.id}/{generation}/{at}.eve.json", body)
            if at > 0:
                with pytest.raises(RefusedError, match=r"stored by 'eve'.*from hop 0"):
                    bank.replay(run, hop=at)
            assert kept_hops(bank, run) == before
    again = bank.replay(run, hop=0)
    assert (again.status, [sent.route.curr for sent in bank.sent(again.id)]) == ("paused", ["work", "approve"])


@pytest.mark.rule("12.input.content", "1.authority")
def test_an_input_says_the_actor_and_the_hop_of_its_key(bank: Mesh) -> None:
    """The code of an actor says what it has received, and sends that on itself: only where it may send."""
    run = bank.send("eve", {"amount": 1})
    other, key = paid(bank), f"hops/{run.id}/0/0.eve.json"
    true = json.loads(bank.cloud.bucket.objects[key])
    at, reference = true["route"], {"key": "payloads/work/a", "size": 1, "sha256": "a"}
    for change in (
        {"route": at | {"curr": "crunch"}},
        {"route": at | {"curr": "x-fan-in", "prev": ["split"]}},
        {"route": at | {"curr": ""}},
        {"route": at | {"prev": ["eve"]}},
        {"headers": {"x-asya-route-override": {"eve": "crunch"}}},
        {"headers": {"x-asya-generation": 1}},
        {"headers": {"x-asya-payload-ref": reference}, "payload": None},
        {"id": other.id},
    ):
        keep(bank, key, true | change)
        with pytest.raises(RefusedError, match=r"0\.eve\.json .* its key"):
            bank.replay(run, hop=0)
        shown = bank.ask("GET", f"/api/v1/mesh/{run.id}/payloads/0", dict[str, Any])
        assert (shown["actor"], shown["before"]["text"], "its key" in shown["before"]["problem"]) == ("eve", "", True)
    for ahead in (["crunch"], ["work"], ["x-checkpoint", "crunch"], ["approve", "crunch"], ["nap", "work"]):
        keep(bank, key, true | {"payload": FORGED, "route": at | {"next": ahead}})
        again = bank.replay(run, hop=0, force=True)
        assert {sent.route.curr for sent in bank.sent(again.id)} <= {"eve", "", "x-checkpoint"}
        assert (again.status, again.errors[0].type) == ("failed", "RouteMismatch")


def item(pk: str, table: str = "sink", **more: Any) -> Body:
    return {"TableName": table_name("bank", table), "Key": {"pk": {"S": pk}, "sk": {"S": "x"}}} | more


def states(**more: Any) -> Body:
    return {"RequestItems": {table_name("bank", "tasks"): {"Keys": [{"pk": {"S": "t"}, "sk": {"S": "record"}}]} | more}}


def query(table: str) -> Body:
    return {"TableName": table_name("bank", table), "KeyConditionExpression": "pk = :id"} | {
        "ExpressionAttributeValues": {":id": {"S": "t"}}
    }


OBJECTS = (
    *("paused/t/0/1.json", "waiting/t/0/1-1.json", "slices/s/000001-a.json", "runs/crunch/0000000001/manifest.json"),
    *("pending/crunch/a.json", "dlq/t/0/1.json", "hops/t/0/1.work.json", "buffered/work/t/0/1-a.json", "mesh/code.zip"),
    *("reports/refused/m.json", "results/succeeded/t.json", "results/checkpoint/t/1.json", "results/index/recent/a"),
)
ITEMS: list[tuple[str, Body]] = [
    *(("get_item", item(pk)) for pk in (TOKENS_KEY, "KEY#", "KEY#work", "OWNER#t", "START#eve#m", "DLQ#m", "t")),
    *(
        ("update_item", item(pk))
        for pk in ("ROLE#r", "KEY#eve", "LETTER#work#a", "LETTER#a", "START#work#m", "DLQ#m", "t")
    ),
    *(("put_item", item(pk)) for pk in ("ROLE#r", "LETTER#work#a", "LETTER#a", "OWNER#t", "OUTAGE", "t")),
    *(("delete_item", item(pk)) for pk in ("OWNER#t", "OUTAGE", "t")),
    *((call, item("eve#t", "hops")) for call in ("get_item", "put_item")),
    *((call, item("eve", "breaker")) for call in ("get_item", "put_item", "update_item")),
    *((call, item("t", table)) for call in ("get_item", "update_item") for table in ("tasks", "pending", "fan-in")),
    *(("query", query(table)) for table in ("tasks", "pending", "fan-in", "sink", "hops", "breaker")),
    *(("batch_get_item", states(**more)) for more in ({}, {"ProjectionExpression": "pk, payload"})),
    ("transact_write_items", {"TransactItems": [{"Update": item("OWNER#t")}, {"Put": item("t")}]}),
    ("batch_write_item", {"RequestItems": {CLAIMS: [{"PutRequest": {"Item": item("OWNER#t")["Key"]}}]}}),
]
QUEUES = (
    "work",
    "approve",
    "crunch",
    "gather",
    "x-ends",
    "x-dispatch",
    "x-completion",
    "x-triggers",
    "x-push",
    "work-dlq",
)


@pytest.mark.rule("4.keys.secret", "4.claim-check.readers", "5.ends-of-the-crew", "13.states")
@pytest.mark.parametrize(("call", "arguments"), ITEMS, ids=lambda value: value if isinstance(value, str) else "")
def test_an_item_of_others_is_closed(bank: Mesh, call: str, arguments: Body) -> None:
    requests = list(of_items(call, arguments, addresses(bank)))
    with pytest.raises(ClientError, match="not authorized"):
        bank.cloud.permissions.check("eve", requests)


@pytest.mark.rule("4.claim-check.readers")
@pytest.mark.parametrize("key", [*OBJECTS, "payloads/work/a", "inbox/work/a"])
def test_an_object_of_others_is_closed(bank: Mesh, key: str) -> None:
    folder = key.rpartition("/")[0] + "/"
    calls = [("get_object", {"Key": key}), ("delete_object", {"Key": key}), ("list_objects_v2", {"Prefix": folder})]
    calls += [("put_object", {"Key": key})]
    for call, arguments in calls:
        with pytest.raises(ClientError, match="not authorized"):
            bank.cloud.permissions.check("eve", of_objects(call, arguments, addresses(bank)))


@pytest.mark.rule("1.who-may-be-sent-to", "5.ends-of-the-crew")
def test_a_queue_of_others_is_closed(bank: Mesh) -> None:
    def refused(call: str, queue: str) -> None:
        requests = list(of_queues(call, {"QueueUrl": f"https://sqs/{queue}"}, addresses(bank)))
        with pytest.raises(ClientError, match="not authorized"):
            bank.cloud.permissions.check("eve", requests)

    for name in QUEUES:
        queue = dlq_name("bank", "work") if name == "work-dlq" else queue_name("bank", name)
        for call in ("send_message", "send_message_batch", "receive_message", "delete_message"):
            refused(call, queue)
    refused("receive_message", dlq_name("bank", "eve"))


@pytest.mark.rule("11.resume.since", "11.callback.post")
@pytest.mark.slow
def test_an_answer_names_the_question_that_was_read_and_counts_for_no_other_one(bank: Mesh) -> None:
    """`work` has held the task, may send to the pause, and asks another question while somebody reads the first one."""

    def pause() -> TaskPause:
        view: TaskView = bank.ask("GET", f"/api/v1/mesh/{run.id}", TaskView)
        assert view.pause is not None
        return view.pause

    def answer(since: str) -> None:
        bank.ask("POST", f"/api/v1/mesh/{run.id}/resume", None, body={"input": {"approved": True}, "since": since})

    run = paid(bank)
    read = pause()
    *_, mine = bank.sent(run.id)
    route = {"prev": ["work", "work"], "curr": "approve", "next": []}
    put(bank, "approve", body_of(mine, "approve") | {"route": route, "payload": {"amount": 999}}, by="work")
    bank.cloud.run_until_idle()
    assert pause().since != read.since
    with pytest.raises(RefusedError, match="is in a later pause"):
        answer(read.since)
    assert run.status == "paused"
    answer(pause().since)
    bank.cloud.run_until_idle()
    assert run.result == {"amount": 999, "approved": True}


@pytest.mark.rule("3.wait", "11.wait.stands")
@pytest.mark.parametrize("actor", ["nap", "stand"])
@pytest.mark.parametrize(
    ("to_x_wait", "days"), [(False, -400), (False, -1), (False, 0), (False, 1), (False, 400), (True, -1), (True, 1)]
)
def test_an_actor_skips_no_wait_behind_it(tmp_path: Path, actor: str, to_x_wait: bool, days: int) -> None:
    """Only the sweep says that a wait is over, whatever times a header names."""
    bank = new_bank(tmp_path)
    bank.fail("eve", ConnectionError("again"))
    given = json.dumps({"payload": {"amount": 2}}).encode()
    answer = bank.cloud.request("POST", "/api/v1/mesh?actor=eve", given, {}, user_arn=TEST_USER, user_id="AIDATEST")
    bank.cloud.finish()
    mine = bank.sent(json.loads(answer["body"])["id"])[0]
    moment = format_time(bank.now + timedelta(days=days))
    wait = {"since": moment, "until": moment}
    put(bank, names.WAIT if to_x_wait else actor, body_of(mine, actor, **{"x-asya-wait": wait}), by="helper")
    bank.travel(days=min(max(0, days), 2), minutes=2)
    assert b"forged" not in bank.objects.get(f"results/succeeded/{mine.id}.json", b"")
