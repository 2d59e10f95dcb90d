"""Code of one light actor tries to speak for tasks of others by ids, claims and children of its own (`protocol §4.keys`)."""

import json
from typing import Any

import pytest

from asya.protocol import task_key
from asya.protocol.envelope import NULL, Envelope, Route
from asya.protocol.headers import KEY
from asya.protocol.task_key import Step
from asya.testing import Mesh
from asya.testing.run import Run
from tests.doubles.attacked_by_code import (
    FORGED,
    PAID,
    Attempt,
    body_of,
    check,
    headers_of,
    held,
    new_bank,
    paid,
    put,
    write,
)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    return new_bank(tmp_path_factory.mktemp("bank"))


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


def as_an_envelope_with_two_ids(bank: Mesh, run: Run) -> None:
    """The check of the key and the store of the end read the same id."""
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


ATTEMPTS = {
    "claims of another form": Attempt(paid, as_claims_of_another_form, PAID),
    "an envelope with two ids": Attempt(paid, as_an_envelope_with_two_ids, PAID),
    "a child with the root of another": Attempt(paid, as_a_child_of_its_own, PAID),
}


@pytest.mark.rule("4.keys.checked", "4.entry.claim")
@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.slow
def test_an_attempt_changes_nothing_of_a_task(bank: Mesh, name: str) -> None:
    check(bank, ATTEMPTS[name])
