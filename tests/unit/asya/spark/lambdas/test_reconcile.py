"""The sweep finds whatever the heavy path has lost, and asks no more of EMR Serverless than it may (`protocol §10`)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.spark import run_formation
from asya.spark.lambdas import reconcile as spark_reconcile
from tests.doubles.heavy import TABLE, World, done, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(spark_reconcile, "MIN_AGE", timedelta(0))
    with heavy_world(monkeypatch) as made:
        yield made


def pending_of(world: World, *ids: str) -> None:
    for envelope_id in ids:
        world.send(envelope_id)
    world.enqueue()


def started(world: World, *ids: str) -> None:
    pending_of(world, *ids)
    world.dispatch()


def lose_the_request(world: World) -> None:
    world.receive("x-dispatch")
    world.services.requests.clear("clean")


@pytest.mark.rule("10.reconcile.request")
def test_pending_without_a_request(world: World) -> None:
    pending_of(world, "a")
    lose_the_request(world)
    world.reconcile()
    assert world.dispatch() == 1
    assert len(world.emr.runs) == 1


def test_a_request_that_is_on_its_way_is_enough(world: World) -> None:
    pending_of(world, "a")
    world.reconcile()
    assert world.dispatch() == 1


@pytest.mark.rule("10.reconcile.request")
def test_a_manifest_that_nobody_has_noted(world: World) -> None:
    pending_of(world, "a")
    lose_the_request(world)
    members = tuple(world.services.pending.members("clean"))
    # A dispatcher died right after this; its message has come to the dead letters.
    manifest = run_formation.form(
        members, namespace="flights", actor="clean", spec=TABLE.actors["clean"], number=1, now=world.services.now()
    )
    world.services.manifests.create(manifest)
    world.services.pending.remove("clean", members)

    world.reconcile()
    world.dispatch()

    assert list(world.emr.by_token) == [manifest.client_token]


@pytest.mark.rule("10.reconcile.request")
def test_a_run_that_was_formed_and_never_started(world: World) -> None:
    world.emr.refusals = ["ThrottlingException"]
    started(world, "a")
    lose_the_request(world)
    world.reconcile()
    world.dispatch()
    assert [run["name"][-1] for run in world.emr.runs.values()] == ["1"]


@pytest.mark.rule("10.reconcile.end")
def test_a_run_whose_event_was_lost(world: World) -> None:
    started(world, "a")
    world.write_results(1, [done(0, 1)])
    world.tell("run1", "SUCCESS", event=False)
    world.reconcile()
    assert world.complete() == 1
    assert [body["payload"] for body in world.bodies("publish")] == [1]


@pytest.mark.rule("10.reconcile.end")
def test_an_event_whose_routing_was_lost(world: World) -> None:
    started(world, "a")
    world.write_results(1, [done(0, 1)])
    world.tell("run1", "SUCCESS")
    world.receive("x-completion")  # whoever took it died for the last time
    world.reconcile()
    assert world.complete() == 1
    assert [body["payload"] for body in world.bodies("publish")] == [1]


def test_a_run_that_could_not_be_started_and_nobody_was_told(world: World) -> None:
    world.emr.refusals = ["ValidationException"]
    started(world, "a")
    world.receive("x-completion")
    world.reconcile()
    world.complete()
    assert [body["status"]["error"]["type"] for body in world.bodies("clean")] == ["SparkJobFailed"]


@pytest.mark.rule("10.reconcile.end")
def test_a_run_that_emr_knows_no_more_is_over(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    started(world, "a")

    def unknown(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": "no such run"}}, "GetJobRun")

    monkeypatch.setattr(world.emr, "get_job_run", unknown)
    world.reconcile()
    (record,) = world.receive("x-completion")["Records"]
    assert "EMR Serverless no longer knows the run" in record["body"]


def test_a_run_that_goes_on_is_left_alone_and_so_is_a_closed_one(world: World) -> None:
    started(world, "a")
    world.reconcile()
    world.write_results(1, [done(0, 1)])
    world.tell("run1", "SUCCESS")
    world.complete()
    world.reconcile()
    assert (world.dispatch(), world.complete()) == (0, 0)


def test_a_young_run_is_not_asked_about(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    started(world, "a")
    world.tell("run1", "SUCCESS", event=False)
    monkeypatch.setattr(spark_reconcile, "MIN_AGE", timedelta(minutes=1))
    world.reconcile()
    assert world.complete() == 0


@pytest.mark.rule("10.reconcile.quota")
def test_the_quota_of_questions_is_kept_and_every_run_has_its_turn(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        started(world, *(f"{number}-{letter}" for letter in "abc"))
    monkeypatch.setattr(spark_reconcile, "RUNS_PER_SWEEP", 3)
    monkeypatch.setattr(spark_reconcile, "RUNS_BETWEEN_PAUSES", 2)
    asked: list[str] = []
    pauses: list[float] = []
    ask = world.emr.get_job_run

    def noted(**given: str) -> Any:
        asked.append(given["jobRunId"])
        return ask(**given)

    monkeypatch.setattr(world.emr, "get_job_run", noted)
    chances = iter([0.0, 0.0, 0.5])  # the other actor has a turn too

    class Environment:
        def __init__(self, real: Any) -> None:
            self._real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def random(self) -> float:
            return next(chances, 0.0)

        def sleep(self, seconds: float) -> None:
            pauses.append(seconds)

    services = world.services_of("x-reconcile")
    object.__setattr__(services.base, "environment", Environment(services.base.environment))
    for _ in range(2):
        spark_reconcile.Reconciler(services).sweep()

    assert asked == [f"run{number}" for number in range(1, 7)]
    assert pauses == [1.0, 1.0]


def test_trouble_with_one_actor_is_not_the_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(name for name, actor in TABLE.actors.items() if actor.kind == "spark")[0] == "clean"
    world.send("s", actor="stats")
    world.enqueue("stats")
    world.receive("x-dispatch")
    world.services.requests.clear("stats")
    services = world.services_of("x-reconcile")
    count = services.pending.count

    def troubled(actor: str) -> int:
        if actor == "clean":
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "busy"}}, "Query")
        return count(actor)

    monkeypatch.setattr(services.pending, "count", troubled)
    spark_reconcile.Reconciler(services).sweep()
    assert world.dispatch() == 1
