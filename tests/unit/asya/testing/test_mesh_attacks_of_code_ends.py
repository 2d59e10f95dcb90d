"""Code of one light actor tries to end tasks of others, and its own ones in a way that nobody can store (`protocol §4.keys`)."""

import hashlib
import json
from typing import Any

import pytest

from asya.protocol import task_key
from asya.protocol.headers import KEY
from asya.protocol.task_key import Step
from asya.testing import Mesh
from asya.testing.run import Run
from tests.doubles.attacked_by_code import (
    FORGED,
    PAID,
    SUMMED,
    Attempt,
    body_of,
    check,
    headers_of,
    held,
    left,
    new_bank,
    paid,
    put,
    sums,
    unstarted,
)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    return new_bank(tmp_path_factory.mktemp("bank"))


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


def as_ends_that_cannot_be_stored(bank: Mesh, _run: Run) -> None:
    """S3 refuses metadata and keys that are too long, and gives nobody the payload that its writer has sealed."""
    content = b'{"amount":3}'
    digest, objects = hashlib.sha256(content).hexdigest(), bank.cloud.bucket
    doors = {"x-sink": "succeeded", "x-sump": "failed", "helper": "pending", "x-checkpoint": "pending"}
    before = left(bank, doors)
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
    assert left(bank, doors) == before


ATTEMPTS = {
    "ends that cannot be stored": Attempt(sums, as_ends_that_cannot_be_stored, SUMMED),
    "an end as progress": Attempt(paid, as_progress_of_an_end, PAID),
}


@pytest.mark.rule("4.keys.checked", "4.claim-check.bad-reference", "11.metadata")
@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.slow
def test_an_attempt_changes_nothing_of_a_task(bank: Mesh, name: str) -> None:
    check(bank, ATTEMPTS[name])


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
