"""protocol §11, x-sink: the rows of the index of results, which reports of ends carry."""

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from asya.ends.results import row_of
from asya.protocol.mesh_table import Sink
from tests.doubles.envelopes import status
from tests.doubles.mesh_world import MeshWorld
from tests.doubles.sink import ended, results, run_sink

INDEXED = Sink(index=True)
pytestmark = pytest.mark.usefixtures("sink_claims")


def rows(world: MeshWorld) -> list[dict[str, Any]]:
    keys = sorted(key for key in world.s3.keys("results/index/"))
    return [json.loads(line) for key in keys for line in world.s3.content(key).splitlines()]


@pytest.mark.rule("11.index")
def test_the_report_of_an_end_carries_its_row_and_nothing_is_written_here(world: MeshWorld) -> None:
    assert run_sink(world, ended(), ended("failed", id="env-2"), options=INDEXED) == []
    assert rows(world) == []
    (row,) = [row_of(event.row) for event in world.gateway.events if isinstance(event.row, Raw)]
    assert (row.id, row.phase, row.recorded_by) == ("env-1", "succeeded", "x-sink")


@pytest.mark.rule("11.index")
def test_an_end_without_an_index_or_an_object_carries_no_row(world: MeshWorld) -> None:
    run_sink(world, ended())
    run_sink(world, ended(id="env-2"), options=Sink(index=True, persist=False))
    assert [event.row for event in world.gateway.events] == [UNSET, UNSET]


@pytest.mark.rule("11.index")
def test_the_ends_of_a_batch_are_rows_of_one_object(world: MeshWorld) -> None:
    assert run_sink(world, *(ended(id=f"env-{n}") for n in range(10)), options=INDEXED, reporting=False) == []
    assert len(world.s3.keys("results/index/recent/")) == 1
    assert {row["id"] for row in rows(world)} == {f"env-{n}" for n in range(10)}
    (row, *_) = rows(world)
    assert (row["phase"], row["last_actor"], row["recorded_by"], row["namespace"]) == (
        "succeeded",
        "infer",
        "x-sink",
        "shop",
    )
    assert row["result_uri"].endswith(f"/results/succeeded/{row['id']}.json")


@pytest.mark.rule("11.index")
def test_batches_of_one_day_are_objects_of_their_own(world: MeshWorld) -> None:
    for number in range(3):
        run_sink(world, ended(id=f"env-{number}"), options=INDEXED, reporting=False)
    assert sorted(row["id"] for row in rows(world)) == ["env-0", "env-1", "env-2"]


@pytest.mark.rule("11.index")
def test_a_row_is_filed_under_the_day_of_its_end(world: MeshWorld) -> None:
    days = ("2026-11-19", "2026-11-20")
    ends = [
        ended(id=f"env-{day}", status=status(phase="succeeded", reason="Completed", updated_at=f"{day}T23:59:59.5Z"))
        for day in days
    ]
    assert run_sink(world, *ends, options=INDEXED, reporting=False) == []
    assert [key.split("/")[3] for key in sorted(world.s3.keys("results/index/"))] == [f"dt={day}" for day in days]


@pytest.mark.rule("11.index.at-least-once")
def test_a_batch_that_comes_again_writes_the_same_object(world: MeshWorld) -> None:
    batch = [ended(id=f"env-{n}") for n in range(3)]
    run_sink(world, *batch, options=INDEXED, reporting=False)
    first = dict(world.s3.objects)
    run_sink(world, *batch, options=INDEXED, reporting=False)
    assert world.s3.objects == first


@pytest.mark.rule("11.index.at-least-once")
def test_a_message_stays_until_its_row_is_written(world: MeshWorld) -> None:
    world.s3.fails = lambda _action, key: "index/" in key
    assert run_sink(world, ended(), ended(id="env-2"), options=INDEXED, reporting=False) == ["message-0", "message-1"]
    assert results(world) == ["succeeded/env-1.json", "succeeded/env-2.json"]
    world.s3.fails = lambda _action, _key: False
    assert run_sink(world, ended(), ended(id="env-2"), options=INDEXED, reporting=False) == []
    assert {row["id"] for row in rows(world)} == {"env-1", "env-2"}


@pytest.mark.rule("11.index")
def test_what_is_not_written_has_not_ended_or_goes_on_to_x_sump_has_no_row_here(world: MeshWorld) -> None:
    run_sink(world, ended("paused"), options=INDEXED, reporting=False)
    run_sink(world, ended("failed", id="env-5"), options=INDEXED, reporting=False)
    run_sink(world, ended(id="env-2"), options=Sink(index=True, persist=False), reporting=False)
    run_sink(world, ended(id="env-3"), reporting=False)
    world.s3.fails = lambda _action, key: key.endswith("/env-4.json")
    run_sink(world, ended(id="env-4"), options=INDEXED, reporting=False)
    assert rows(world) == []
