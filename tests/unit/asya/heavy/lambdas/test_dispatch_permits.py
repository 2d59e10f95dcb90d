"""On an application of others no run starts beyond its permits (`protocol §10`)."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from asya.heavy.lambdas.dispatch import Dispatcher
from asya.heavy.lambdas.run_start import RunStart
from asya.protocol.mesh_table import SparkApplication, SparkJob
from tests.doubles.dispatching import dispatch_now, enqueue_ids, waiting_requests
from tests.doubles.heavy import BUCKET, TABLE, HeavyWorld, done_result, heavy_world
from tests.doubles.interleaving import Crash


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    """A mesh on an application that exists, with two active runs at most."""
    spark = SparkApplication(start_per_second=100.0, start_burst=100, max_concurrent_runs=2)
    with heavy_world(monkeypatch, replace(TABLE, spark=spark)) as heavy:
        yield heavy


def fill(world: HeavyWorld) -> None:
    """Starts a run of each actor, and makes an envelope of the first one pending."""
    for actor in ("clean", "stats"):
        world.send(f"first-{actor}", actor=actor)
        world.enqueue(actor)
        dispatch_now(world, actor)
    enqueue_ids(world, "next")
    dispatch_now(world, "clean")


def _die(**_: Any) -> None:
    raise Crash


def names_of(world: HeavyWorld) -> list[str]:
    return [run["name"] for run in world.emr.runs.values()]


FIRST = ["asya.flights.clean.0000000001", "asya.flights.stats.0000000001"]


@pytest.mark.rule("10.busy.slots")
def test_no_run_starts_beyond_the_permits(shared: HeavyWorld) -> None:
    fill(shared)

    assert names_of(shared) == FIRST
    assert shared.emr.calls == 2
    assert waiting_requests(shared) == {"due": "0", "delayed": "1"}
    dispatch_now(shared, "clean")
    assert names_of(shared) == FIRST
    assert shared.bodies("clean") == []
    assert shared.bodies("x-sink") == []


@pytest.mark.rule("10.busy.slots")
@pytest.mark.slow
def test_the_end_of_a_run_frees_its_permit(shared: HeavyWorld) -> None:
    fill(shared)
    shared.write_results(1, [done_result(0, {})], actor="stats")
    shared.set_state("run2", "SUCCESS")
    shared.complete()

    assert shared.dispatch() == 1  # the close of the run sent a request for the actor that waits
    assert names_of(shared) == [*FIRST, "asya.flights.clean.0000000002"]
    assert [member.attempt for member in shared.manifest(2).members] == [1]


@pytest.mark.rule("10.busy.slots")
def test_a_dispatcher_that_died_after_taking_a_permit_starts_the_run_with_it(
    shared: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue_ids(shared, "a")
    with monkeypatch.context() as patch:
        patch.setattr(shared.emr, "start_job_run", _die)
        with pytest.raises(Crash):
            dispatch_now(shared, "clean")
    assert names_of(shared) == []
    shared.services.run_permits.take("asya.flights.stats.0000000009", is_active=lambda _: True, now=datetime.now(UTC))
    assert not shared.services.run_permits.take(
        "asya.flights.stats.0000000010", is_active=lambda _: True, now=datetime.now(UTC)
    )

    dispatch_now(shared, "clean")

    assert names_of(shared) == FIRST[:1]


def test_a_refused_run_holds_no_permit(shared: HeavyWorld) -> None:
    shared.emr.refusals = ["ValidationException", "ValidationException"]
    fill(shared)
    assert names_of(shared) == ["asya.flights.clean.0000000002"]


def test_a_run_of_a_removed_actor_that_never_started_holds_no_permit(shared: HeavyWorld) -> None:
    shared.emr.refusals = ["ThrottlingException"]
    enqueue_ids(shared, "a")
    shared.dispatch()
    assert names_of(shared) == []
    others = replace(shared.table, actors={"stats": shared.table.actors["stats"]})
    remaining = RunStart(HeavyWorld(others).services)

    assert RunStart(shared.services).holds_permit(FIRST[0])
    assert not remaining.holds_permit(FIRST[0])
    assert not remaining.holds_permit("nightly")


@pytest.mark.rule("10.busy.slots")
@pytest.mark.parametrize("end", ["SUCCESS", "unknown"])
def test_a_run_of_a_removed_actor_holds_its_permit_until_it_ends(shared: HeavyWorld, end: str) -> None:
    """Nobody reconciles the runs of a removed actor, so a lost event must not keep the permit."""
    enqueue_ids(shared, "a")
    shared.dispatch()
    shared.table = replace(shared.table, actors={"stats": shared.table.actors["stats"]})
    dispatcher = RunStart(shared.services_of("x-dispatch"))
    assert dispatcher.holds_permit(FIRST[0])

    if end == "unknown":
        shared.emr.forgotten.add("run1")
    else:
        shared.set_state("run1", end, event=False)

    assert not dispatcher.holds_permit(FIRST[0])


def test_an_unknown_state_of_a_run_of_a_removed_actor_keeps_its_permit(
    shared: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue_ids(shared, "a")
    shared.dispatch()
    shared.table = replace(shared.table, actors={"stats": shared.table.actors["stats"]})

    def throttled(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "busy"}}, "GetJobRun")

    monkeypatch.setattr(shared.emr, "get_job_run", throttled)
    assert RunStart(shared.services_of("x-dispatch")).holds_permit(FIRST[0])


def holders(world: HeavyWorld) -> list[str]:
    return [name for item in world.items("QUOTA#concurrent-runs") for name in item.get("holders", {}).get("SS", [])]


@pytest.mark.rule("10.busy.slots")
@pytest.mark.parametrize("code", ["AccessDeniedException", "ApplicationMaxCapacityExceededException"])
def test_a_run_that_cannot_start_holds_no_permit(shared: HeavyWorld, code: str) -> None:
    shared.emr.refusals = [code]
    enqueue_ids(shared, "a")
    Dispatcher(shared.services_of("x-dispatch")).process(shared.receive("x-dispatch"))
    assert (names_of(shared), holders(shared)) == ([], [])

    dispatch_now(shared, "clean")
    assert (names_of(shared), holders(shared)) == (FIRST[:1], FIRST[:1])


@pytest.mark.rule("10.busy.slots")
def test_a_run_that_emr_may_have_accepted_keeps_its_permit(shared: HeavyWorld) -> None:
    shared.emr.refusals = ["InternalServerException"]
    enqueue_ids(shared, "a")
    shared.dispatch()
    assert (names_of(shared), holders(shared)) == ([], FIRST[:1])


def test_a_run_without_its_manifest_holds_no_permit(shared: HeavyWorld) -> None:
    shared.emr.refusals = ["ThrottlingException"]
    enqueue_ids(shared, "a")
    shared.dispatch()
    shared.s3.delete_object(Bucket=BUCKET, Key="runs/clean/0000000001/manifest.json")
    shared.services.requests.clear("clean")
    shared.services.requests.ensure("clean", 0, now=datetime.now(UTC))

    event = shared.receive("x-dispatch")
    answer = Dispatcher(shared.services_of("x-dispatch")).process(event)

    assert len(answer["batchItemFailures"]) == len(event["Records"]) == 1
    assert holders(shared) == []


def test_an_application_of_the_mesh_needs_no_permits(world: HeavyWorld) -> None:
    enqueue_ids(world, "a")
    world.dispatch()
    assert world.items("QUOTA#concurrent-runs") == []


@pytest.mark.rule("10.priority")
def test_10_the_run_of_a_higher_priority_starts_first(monkeypatch: pytest.MonkeyPatch) -> None:
    urgent = replace(TABLE.actors["stats"], spark=SparkJob(job="flights.stats", priority=1))
    spark = SparkApplication(start_per_second=100.0, start_burst=100, max_concurrent_runs=1)
    table = replace(TABLE, actors={**TABLE.actors, "stats": urgent}, spark=spark)
    with heavy_world(monkeypatch, table) as world:
        enqueue_ids(world, "a")
        world.dispatch()
        for actor in ("clean", "stats"):
            world.send(f"next-{actor}", actor=actor)
            world.enqueue(actor)
            dispatch_now(world, actor)
        world.write_results(1, [done_result(0, {})])
        world.set_state("run1", "SUCCESS")
        world.complete()

        for actor in ("clean", "stats", "clean"):
            dispatch_now(world, actor)

        assert names_of(world) == FIRST
