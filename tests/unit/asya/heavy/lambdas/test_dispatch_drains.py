"""A drained actor forms no runs, and loses nothing (`protocol §10`)."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from asya.heavy.lambdas import reconcile as spark_reconcile
from tests.doubles.dispatching import start_run
from tests.doubles.heavy import HeavyWorld, done_result, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    monkeypatch.setattr(spark_reconcile, "MIN_AGE", timedelta(0))
    with heavy_world(monkeypatch) as heavy:
        yield heavy


def drain(world: HeavyWorld, actor: str = "clean") -> None:
    world.services.drains.start(actor, now=world.services.now(), by="arn:aws:iam::1:user/ann")


def pending(world: HeavyWorld) -> list[str]:
    return [member.id for member in world.services.pending.members("clean")]


@pytest.mark.rule("10.drain")
@pytest.mark.rule("10.drain.requests")
def test_the_envelopes_of_a_drained_actor_stay_pending_without_a_request(world: HeavyWorld) -> None:
    drain(world)
    for _ in range(5):  # more often than the dispatcher's queue lets a message be received
        world.send("a")
        world.enqueue()
        assert world.dispatch() == 1
    world.reconcile()

    assert (world.dispatch(), world.emr.calls) == (0, 0)
    assert pending(world) == ["a"]


@pytest.mark.rule("10.drain.end")
def test_the_reconciler_starts_the_runs_of_an_actor_whose_drain_has_ended(world: HeavyWorld) -> None:
    drain(world)
    start_run(world, "a", "b")
    assert pending(world) == ["a", "b"]

    world.services.drains.end("clean")
    world.reconcile()

    assert world.dispatch() == 1
    assert [member.id for member in world.manifest(1).members] == ["a", "b"]
    assert (pending(world), len(world.emr.runs)) == ([], 1)


@pytest.mark.rule("10.drain")
def test_another_actor_forms_its_runs(world: HeavyWorld) -> None:
    drain(world, "stats")
    start_run(world, "a")
    assert len(world.emr.runs) == 1


@pytest.mark.rule("10.drain")
def test_a_run_that_goes_on_is_routed(world: HeavyWorld) -> None:
    start_run(world, "a")
    drain(world)
    world.write_results(1, [done_result(0, 1)])
    world.set_state("run1", "SUCCESS")
    world.complete()
    assert [body["payload"] for body in world.bodies("publish")] == [1]


@pytest.mark.rule("10.drain")
def test_a_run_that_was_formed_before_is_started(world: HeavyWorld) -> None:
    world.emr.refusals = ["ServiceQuotaExceededException"]
    start_run(world, "a")
    drain(world)
    world.receive("x-dispatch")
    world.services.requests.clear("clean")

    world.reconcile()
    world.dispatch()

    record = world.services.records.get("clean", 1)
    assert record is not None
    assert record.state == "started"


@pytest.mark.rule("10.drain")
def test_members_that_a_run_returns_wait_too(world: HeavyWorld) -> None:
    start_run(world, "a", "b")
    drain(world)
    world.set_state("run1", "CANCELLED")  # the driver wrote nothing, so the run is halved
    world.complete()
    while world.dispatch():
        pass
    assert (pending(world), world.emr.calls) == (["a", "b"], 1)


def test_the_first_of_two_drains_stands(world: HeavyWorld) -> None:
    first = world.services.drains.start("clean", now=world.services.now(), by="ann", reason="table maintenance")
    second = world.services.drains.start("clean", now=world.services.now() + timedelta(hours=1), by="bob")
    assert second == first == world.services.drains.get("clean")
    world.services.drains.end("clean")
    assert world.services.drains.get("clean") is None
