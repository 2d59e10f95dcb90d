"""Starts that follow from each other: the record of a task says which triggers led to it, and a chain has an end."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asya.capabilities.triggers.chains import MOST_CHAINED
from asya.capabilities.triggers.sources.new_objects import Buckets, NewObject, object_occurrence
from asya.function.hop import PROBLEM
from asya.protocol import names
from asya.protocol.keys import task_of_key
from asya.protocol.task import StartedBy
from asya.protocol.triggers import ObjectSource, Trigger
from asya.testing import Mesh
from asya.testing.messages import put
from asya_cli.tasks.report import started_by as started_by_line
from tests.doubles.tasks import at

QUEUE = names.queue_name("shop", names.TRIGGERS)
MESH = """
namespace: shop
code: handlers
actors:
  greet: {handler: greetings.greet}
triggers:
  ping: {route: [greet], event: {source: [ping]}, input: /detail}
  pong: {route: [greet], event: {source: [pong]}, input: /detail, overlap: queue}
  many: {route: [greet], event: {source: [many]}, input: /detail, batch: {size: 3, window: 5s}}
"""


@pytest.fixture
def mesh(folder: Path) -> Mesh:
    (folder / "mesh.yaml").write_text(MESH)
    return Mesh(folder / "mesh.yaml")


def happen(mesh: Mesh, trigger: str, number: int, cause: Any = None) -> None:
    """Put an event that a task has caused, perhaps through another system."""
    detail = {"number": number} | ({"x-asya-task": cause} if cause is not None else {})
    event = {
        "id": f"e{number}",
        "source": trigger,
        "detail-type": "T",
        "time": "2026-11-25T10:00:00Z",
        "detail": detail,
    }
    put(mesh.cloud, names.TRIGGERS, json.dumps({"trigger": trigger, "event": event}), sender="AIDAOFAWS")
    mesh.travel(minutes=1)


def started(mesh: Mesh) -> dict[int, Any]:
    """What started the tasks of triggers, by the numbers of their events."""
    tasks = [mesh.ask("GET", f"/api/v1/mesh/{run.id}", dict) for run in mesh.runs()]
    return {
        task["result"]["number"]: task.get("started_by") for task in tasks if "number" in (task.get("result") or {})
    }


def id_of(mesh: Mesh, number: int) -> str:
    """The id of the task of an event."""
    (found,) = [run.id for run in mesh.runs() if run.result.get("number") == number]
    return found


@pytest.mark.rule("16.chain")
@pytest.mark.slow
def test_16_two_triggers_that_start_each_other_end_with_a_dead_letter_that_names_both(mesh: Mesh) -> None:
    """Also if one of them has lanes. The letter can be redriven, and is refused again."""
    happen(mesh, "ping", 0)
    for number in range(1, MOST_CHAINED + 1):
        happen(mesh, ("ping", "pong")[number % 2], number, id_of(mesh, number - 1))
    found = started(mesh)
    assert found[0] == {"kind": "trigger", "name": "ping"}
    assert found[3] == {"kind": "trigger", "name": "pong", "after": ["ping", "pong", "ping"]}
    assert sorted(found) == list(range(MOST_CHAINED))
    letters = mesh.cloud.queues.queues[f"{QUEUE}-dlq"].messages
    assert [letter.attributes[PROBLEM]["StringValue"] for letter in letters] == [
        "the triggers 'ping' and 'pong' start each other: 16 starts follow from each other. Let their tasks write results, or "
        "send events, that start none of them"
    ]


@pytest.mark.rule("16.chain")
@pytest.mark.parametrize("cause", ["unknown", "", 7, ["x"], {"after": ["ping"] * 20}])
def test_16_a_cause_that_is_no_task_begins_a_chain(mesh: Mesh, cause: Any) -> None:
    """A stranger may name what he likes: the record says what led to a task, so nothing is made longer or shorter."""
    happen(mesh, "ping", 0, cause)
    assert started(mesh)[0] == {"kind": "trigger", "name": "ping"}


@pytest.mark.rule("16.chain")
def test_16_a_task_of_a_caller_begins_a_chain(mesh: Mesh) -> None:
    run = mesh.send("greet", {"number": 0})
    happen(mesh, "ping", 1, run.id)
    happen(mesh, "ping", 2, id_of(mesh, 1))
    assert [started(mesh)[number].get("after") for number in (1, 2)] == [None, ["ping"]]


@pytest.mark.rule("16.chain")
def test_16_a_batch_has_the_longest_chain_of_its_occurrences(mesh: Mesh) -> None:
    happen(mesh, "ping", 0)
    happen(mesh, "ping", 1, id_of(mesh, 0))
    for number, cause in ((2, None), (3, id_of(mesh, 1)), (4, id_of(mesh, 0))):
        happen(mesh, "many", number, cause)
    tasks = [mesh.ask("GET", f"/api/v1/mesh/{run.id}", dict) for run in mesh.runs()]
    batches = [task["started_by"].get("after") for task in tasks if "items" in task["result"]]
    assert ["ping", "ping"] in batches


@pytest.mark.rule("16.chain")
@pytest.mark.parametrize(
    ("key", "task_id"),
    [
        ("succeeded/t1.json", "t1"),
        ("succeeded/2026-11-25T10:00:00Z/greet/a%2Fb.json", "a/b"),
        ("canceled/t1.json", "t1"),
        ("superseded/t1/0/2-failed-00ff.json", "t1"),
        ("checkpoint/a%2Fb/3.json", "a/b"),
        ("index/recent/2026.jsonl", None),
        ("exports/sales.parquet", None),
    ],
)
def test_16_the_key_of_a_result_names_its_task(key: str, task_id: str | None) -> None:
    """Only x-sink and the other end actors write such keys, except where `access` lets an actor write them."""
    buckets = Buckets("s3://shop/data/", "s3://shop/results/")
    new = NewObject("shop", f"results/{key}", 1, "e", "", "0A", at(0))
    trigger = Trigger(route=("greet",), objects=ObjectSource(bucket="results"))
    occurrence = object_occurrence("t", trigger, new, buckets)
    assert occurrence is not None
    assert (occurrence.cause, task_of_key(key)) == (task_id, task_id)


@pytest.mark.rule("16.chain")
def test_16_the_result_of_a_slice_leads_back_to_its_root(mesh: Mesh) -> None:
    """The record of a child does not say what started its root."""
    happen(mesh, "ping", 0)
    table = mesh.cloud.tables.tables[names.table_name("shop", "tasks")].items
    root = id_of(mesh, 0)
    child = {name: value for name, value in table[root, "record"].items() if name != "started_by"}
    table["slice", "record"] = {**child, "pk": {"S": "slice"}, "root_id": {"S": root}, "parent_id": {"S": root}}
    happen(mesh, "pong", 1, "slice")
    assert started(mesh)[1]["after"] == ["ping"]


@pytest.mark.rule("16.chain")
def test_16_the_status_of_a_task_names_the_triggers_that_led_to_it(mesh: Mesh) -> None:
    happen(mesh, "ping", 0)
    happen(mesh, "pong", 1, id_of(mesh, 0))
    happen(mesh, "ping", 2, id_of(mesh, 1))
    shown = [started_by_line(msgspec.convert(started(mesh)[number], StartedBy)) for number in range(3)]
    assert shown == [
        "trigger ping",
        "trigger pong, after the trigger ping",
        "trigger ping, after the triggers ping, pong",
    ]
