"""protocol §11.index: the consumer of the report queues writes the rows that ends carry, many to an object."""

import dataclasses
import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from asya.ends.results import ResultRow
from asya.gateway.lambdas.report_queues import ReportQueues
from asya.gateway.lambdas.wiring import build_report_queues
from asya.protocol.events import TaskEvent
from asya.protocol.mesh_table import Gateway, Sink
from asya.sidecar.lambdas.services import Services
from tests.doubles.envelopes import mesh
from tests.doubles.mesh_world import MeshWorld, batch_failures
from tests.doubles.report_queues import Clock, batch, body, foreign, record, refused
from tests.doubles.tasks import event

DAY = "2026-11-20"
ROW = ResultRow(
    namespace="shop",
    id="t",
    generation=0,
    parent_id=None,
    root_id="t",
    phase="succeeded",
    reason="Completed",
    last_actor="infer",
    route=("infer",),
    attempt=1,
    error_type=None,
    error_message=None,
    created_at=None,
    ended_at=f"{DAY}T09:00:40.000000Z",
    seconds=None,
    payload_bytes=4,
    result_uri="s3://bucket/results/succeeded/t.json",
    recorded_by="x-sink",
)


@pytest.fixture
def indexed(world: MeshWorld, clock: Clock, _roles: None) -> ReportQueues:
    """The consumer of a mesh with an index of results, which may report to the gateway of the world as a foreign one."""
    allowed = Gateway(foreign_gateways=(world.gateway.url.removeprefix("http://"),))
    table = replace(mesh(sink=Sink(index=True)), gateway=allowed)
    settings = dataclasses.replace(world.services("x-reports", table).settings, gateway_url="https://own.example")
    return build_report_queues(Services(settings, clock))


def end(task_id: str, **fields: Any) -> TaskEvent:
    """The report of an end with its row."""
    row = msgspec.json.encode(replace(ROW, id=task_id, **fields))
    return replace(event(task_id, "succeeded", 3, 40), row=msgspec.Raw(row))


def rows(world: MeshWorld) -> list[Any]:
    keys = sorted(world.s3.keys("results/index/"))
    return [json.loads(line) for key in keys for line in world.s3.content(key).splitlines()]


@pytest.mark.rule("11.index")
def test_the_rows_of_many_messages_are_one_object_for_each_day(world: MeshWorld, indexed: ReportQueues) -> None:
    ends = [end(f"t-{number}") for number in range(20)] + [end("old", ended_at="2026-11-19T23:59:59.000000Z")]
    messages = [body(*ends[start : start + 3]) for start in range(0, len(ends), 3)]
    assert batch_failures(indexed.process(batch("x-ends", *messages))) == []
    assert [key.split("/")[3] for key in sorted(world.s3.keys("results/index/"))] == ["dt=2026-11-19", f"dt={DAY}"]
    assert sorted(row["id"] for row in rows(world)) == sorted(each.id for each in ends)
    assert record(world, "t-7")["status"]["S"] == "succeeded"


@pytest.mark.rule("11.index.at-least-once")
def test_a_message_stays_until_its_rows_are_written_and_comes_again_with_the_same_object(
    world: MeshWorld, indexed: ReportQueues
) -> None:
    messages = batch("x-ends", body(end("a")), body(event("b", "succeeded", 3, 40)))
    world.s3.fails = lambda _action, key: "index/" in key
    assert batch_failures(indexed.process(messages)) == ["message-0"]
    world.s3.fails = lambda _action, _key: False
    for _ in range(2):
        assert batch_failures(indexed.process(messages)) == []
    assert [row["id"] for row in rows(world)] == ["a"]


@pytest.mark.rule("11.index")
def test_a_row_on_the_queue_of_all_actors_does_not_count(world: MeshWorld, indexed: ReportQueues) -> None:
    forged = replace(end("t"), status="completed")
    assert batch_failures(indexed.process(batch("x-reports", body(forged)))) == []
    assert rows(world) == []
    assert record(world)["status"]["S"] == "running"


@pytest.mark.rule("11.index")
@pytest.mark.parametrize("row", ['"text"', "{}", '{"id": 5}'])
def test_an_end_counts_whose_row_cannot_be_read(world: MeshWorld, indexed: ReportQueues, row: str) -> None:
    damaged = replace(end("t"), row=msgspec.Raw(row.encode()))
    assert batch_failures(indexed.process(batch("x-ends", body(damaged, end("b"))))) == []
    assert record(world)["status"]["S"] == "succeeded"
    assert [each["id"] for each in rows(world)] == ["b"]
    ((kept,),) = (each["reports"] for each in refused(world))
    assert kept["report"] == json.loads(row)
    assert "index of results" in kept["problem"]


@pytest.mark.rule("11.index")
def test_the_row_of_an_end_for_a_foreign_gateway_stays_here(world: MeshWorld, indexed: ReportQueues) -> None:
    assert batch_failures(indexed.process(batch("x-ends", body(foreign(world, end("t")))))) == []
    assert [each["id"] for each in rows(world)] == ["t"]
    assert [(each.id, each.row) for each in world.gateway.events] == [("t", msgspec.UNSET)]


def test_a_mesh_that_no_longer_has_an_index_takes_the_ends_without_rows(world: MeshWorld, queues: ReportQueues) -> None:
    assert batch_failures(queues.process(batch("x-ends", body(end("t"))))) == []
    assert record(world)["status"]["S"] == "succeeded"
    assert rows(world) == []
