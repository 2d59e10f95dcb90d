"""A bank whose actor `eve` runs hostile code: what that code may put and write, and the tasks of others that it attacks.

Each attempt is a row of a test: it changes nothing of the task that it is about, and the task goes on to its result.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from asya.protocol import task_key
from asya.protocol.envelope import NULL, Envelope, Route
from asya.protocol.names import dlq_name, queue_name, table_name
from asya.testing import Mesh
from asya.testing.permissions import of_items
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


PAID = {"amount": 1, "approved": True}
SUMMED = {"items": [1, 2], "sums": [1, 2]}


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


def unstarted(bank: Mesh) -> Envelope:
    """The first envelope of a task that no message has started, as code makes it with the claim and the secret of its actor."""
    own = Envelope(id=f"unstarted-{next(_numbers)}", route=Route((), "eve", ()), payload=NULL)
    write(bank, f"OWNER#{own.id}", "owner", owner={"S": "AROAEVE"}, entered_at={"SS": ["eve"]})
    return task_key.entered(own, task_key.actor_secret(bytes(task_key.SECRET_BYTES), "eve"), "eve", "m")


@dataclass(frozen=True)
class Attempt:
    """What code tries, about which task of others. The task then goes on as if nothing had been."""

    about: Callable[[Mesh], Run]
    act: Callable[[Mesh, Run], None]
    result: Any


def check(bank: Mesh, attempt: Attempt) -> None:
    """Make an attempt, and compare what is kept of the task before and after it. Then the task goes on to its result."""
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


def left(bank: Mesh, doors: Iterable[str]) -> dict[str, int]:
    """How many messages lie on the queues of these doors, and on their dead-letter queues."""
    names = [name("bank", door) for door in doors for name in (queue_name, dlq_name)]
    return {name: len(bank.cloud.queues.queues[name].messages) for name in names}
