"""Needs that nothing makes use of are found, in parts: one call on one queue, key, index or resource."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from asya import registry
from asya.needs import Calls, Items, Keys, Messages, Need, Objects, Payloads, Resource, split
from asya.protocol.mesh_table import Actor, MeshTable
from asya.testing import Mesh, permissions
from asya.testing.permissions import Permissions
from asya_infra.permissions.evaluation import Request, is_allowed
from asya_infra.permissions.needs import grants
from tests.used_needs import REASONS, Notes, declared, problems, read

ACTORS = {"bill": Actor(kind="handler", can_send_to=("ship",)), "ship": Actor(kind="handler")}
PLACE = Permissions(MeshTable(namespace="shop", actors=ACTORS)).place
BILL = "kind handler: "
SENDS = Request("sqs:SendMessage", PLACE.addresses.queue_arn("ship"))


@pytest.mark.parametrize(
    ("need", "parts"),
    [
        (Messages(calls=("ReceiveMessage", "SendMessage"), queues=("a", "b")), 4),
        (Items(table="sink", calls=("GetItem", "PutItem"), keys=("ROLE#*", "OUTAGE")), 4),
        (Items(table="tasks", calls=("Query",), indexes=("due", "listed")), 2),
        (Items(table="tasks", calls=("GetItem", "Query")), 2),
        (Objects(calls=("GetObject", "PutObject"), keys=("a/*", "b/*")), 4),
        (Keys(keys=("a/*", "b/*")), 2),
        (Payloads(to=("a", "b")), 2),
        (Payloads(), 1),
        (Calls(calls=("events:PutEvents",), on=Resource.EVENT_BUS), 1),
    ],
)
def test_a_need_has_a_part_for_each_call_and_target(need: Need, parts: int) -> None:
    """What the parts allow is what the need allows."""
    assert len(list(split(need))) == parts
    whole = {
        (action, arn) for grant in grants(need, "bill", PLACE) for action in grant.actions for arn in grant.resources
    }
    split_up = {
        (action, arn)
        for part in split(need)
        for grant in grants(part, "bill", PLACE)
        for action in grant.actions
        for arn in grant.resources
    }
    assert split_up == whole


def test_a_call_makes_use_of_the_needs_that_allow_it() -> None:
    notes = Notes()
    notes.note(PLACE, "bill", SENDS)
    assert notes.used == {f"{BILL}sqs:SendMessage its targets"}


def test_a_read_makes_use_of_the_list_of_keys() -> None:
    """S3 answers 404 for a missing object only to those who may list its key."""
    notes = Notes()
    bucket = PLACE.addresses.bucket
    notes.note(PLACE, "bill", Request("s3:GetObject", PLACE.addresses.objects_arn(bucket, "inbox/bill/ab/c.json")))
    assert notes.used == {f"{BILL}s3:{call} bucket/inbox/{{own}}/*" for call in ("GetObject", "ListBucket")}


def test_each_key_of_a_call_counts() -> None:
    notes = Notes()
    table = PLACE.addresses.table_arn("sink")
    keys = {"dynamodb:LeadingKeys": ("DLQ#1", "DLQ#2")}
    assert is_allowed(
        [each.statement() for need in registry.PRODUCT.steps["x-dlq"].needs for each in grants(need, "x-dlq", PLACE)],
        Request("dynamodb:BatchGetItem", table, keys),
    )
    notes.note(PLACE, "x-dlq", Request("dynamodb:BatchGetItem", table, keys))
    assert notes.used == {"x-dlq: dynamodb:BatchGetItem sink DLQ#*"}


def test_notes_of_all_processes_count(tmp_path: Path) -> None:
    notes = Notes()
    notes.note(PLACE, "bill", SENDS)
    notes.write(tmp_path)
    (tmp_path / "other.json").write_text('["x: call on y"]')
    assert read(tmp_path) == {*notes.used, "x: call on y"}


def test_a_mesh_of_the_kit_tells_its_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()
    monkeypatch.setattr(permissions, "OBSERVERS", [notes.note])
    (tmp_path / "functions" / "handlers").mkdir(parents=True)
    (tmp_path / "mesh.yaml").write_text("namespace: shop\nactors: {ask: {kind: pause, pause: {prompt: Go on}}}\n")
    Mesh(tmp_path / "mesh.yaml").send("ask", {})
    assert "kind pause: events:PutEvents the default bus, as the mesh" in notes.used
    assert not any(line.startswith(("kind pause: kms:", "kind wait: ")) for line in notes.used)


def test_a_need_that_nothing_uses_is_a_problem_unless_it_has_a_reason() -> None:
    lines = ["a: call on b", "a: call on c", "d: call on b"]
    assert problems(lines, {"a: call on b"}, {"why": ("d: *",)}) == ["a: call on c"]
    assert problems(lines, set(lines), {"why": ("d: *",)}) == []


def test_every_reason_stands_for_needs() -> None:
    lines, patterns = set(declared()), [pattern for each in REASONS.values() for pattern in each]
    assert [each for each in patterns if not any(fnmatchcase(line, each) for line in lines)] == []
    assert len(patterns) == len(set(patterns))
