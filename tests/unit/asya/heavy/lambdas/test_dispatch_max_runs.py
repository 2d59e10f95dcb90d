"""The runs of an actor with `max_runs`, such as the only writer of a table (`protocol §10.max-runs`)."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from asya.protocol.mesh_table import SparkJob
from tests.doubles.dispatching import dispatch_now, enqueue_ids, waiting_requests
from tests.doubles.heavy import TABLE, HeavyWorld, done_result, heavy_world

ONE = replace(TABLE.actors["clean"], spark=SparkJob(job="flights.clean", max_runs=1))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch, replace(TABLE, actors={**TABLE.actors, "clean": ONE})) as heavy:
        yield heavy


def names_of(world: HeavyWorld) -> list[str]:
    return [run["name"] for run in world.emr.runs.values()]


FIRST, SECOND = "asya.flights.clean.0000000001", "asya.flights.clean.0000000002"


@pytest.mark.rule("10.max-runs")
def test_10_no_run_is_formed_beside_the_only_one(world: HeavyWorld) -> None:
    enqueue_ids(world, "a", "b", "c", "d")
    while world.dispatch():
        pass
    assert waiting_requests(world) == {"due": "0", "delayed": "1"}
    world.set_state("run1", "RUNNING")
    world.complete()
    world.dispatch()
    dispatch_now(world, "clean")

    assert names_of(world) == [FIRST]
    assert not world.services.manifests.exists("clean", 2)
    world.send("other", actor="stats")
    world.enqueue("stats")
    world.dispatch()
    assert names_of(world)[1:] == ["asya.flights.stats.0000000001"]


@pytest.mark.rule("10.max-runs")
@pytest.mark.parametrize("state", ["SUCCESS", "FAILED"])
def test_10_the_end_of_the_only_run_starts_the_next_one(world: HeavyWorld, state: str) -> None:
    enqueue_ids(world, "a", "b", "c", "d")
    while world.dispatch():
        pass
    world.write_results(1, [done_result(index, {}) for index in range(3)])
    world.set_state("run1", state)
    world.complete()

    while world.dispatch():
        pass

    assert names_of(world) == [FIRST, SECOND]
    assert [one.id for one in world.manifest(2).members] == ["d"]


@pytest.mark.rule("10.max-runs")
def test_10_a_refused_run_counts_no_more(world: HeavyWorld) -> None:
    world.emr.refusals = ["ValidationException"]
    enqueue_ids(world, "a")
    world.dispatch()
    enqueue_ids(world, "b")
    world.dispatch()

    assert names_of(world) == [SECOND]


def test_without_waiting_envelopes_there_is_no_request(world: HeavyWorld) -> None:
    enqueue_ids(world, "a")
    world.dispatch()
    dispatch_now(world, "clean")

    assert waiting_requests(world) == {"due": "0", "delayed": "0"}
