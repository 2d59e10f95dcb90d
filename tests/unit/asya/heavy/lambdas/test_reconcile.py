"""The reconciler repairs the heavy path and keeps within the quota of EMR Serverless (`protocol §10`)."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.heavy import run_formation
from asya.heavy.lambdas import reconcile as spark_reconcile
from tests.doubles.emf import metric_values, metrics
from tests.doubles.heavy import BUCKET, TABLE, HeavyWorld, done_result, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    monkeypatch.setattr(spark_reconcile, "MIN_AGE", timedelta(0))
    with heavy_world(monkeypatch) as heavy:
        yield heavy


def enqueue_ids(world: HeavyWorld, *ids: str) -> None:
    for envelope_id in ids:
        world.send(envelope_id)
    world.enqueue()


def start_run(world: HeavyWorld, *ids: str) -> None:
    enqueue_ids(world, *ids)
    world.dispatch()


def lose_request(world: HeavyWorld) -> None:
    world.receive("x-dispatch")
    world.services.requests.clear("clean")


@pytest.mark.rule("10.reconcile.request")
def test_pending_without_a_request(world: HeavyWorld) -> None:
    enqueue_ids(world, "a")
    lose_request(world)
    world.reconcile()
    assert world.dispatch() == 1
    assert len(world.emr.runs) == 1


def test_a_request_that_is_on_its_way_is_enough(world: HeavyWorld) -> None:
    enqueue_ids(world, "a")
    world.reconcile()
    assert world.dispatch() == 1


@pytest.mark.rule("10.reconcile.request")
def test_a_manifest_without_a_record(world: HeavyWorld) -> None:
    enqueue_ids(world, "a")
    lose_request(world)
    members = tuple(world.services.pending.members("clean"))
    # The dispatcher failed after this write, and its message became a dead letter.
    manifest = run_formation.form(
        members, namespace="flights", actor="clean", spec=TABLE.actors["clean"], number=1, now=world.services.now()
    )
    world.services.manifests.create(manifest)
    world.services.pending.remove("clean", members)

    world.reconcile()
    world.dispatch()

    assert list(world.emr.by_token) == [manifest.client_token]


@pytest.mark.rule("10.reconcile.request")
def test_a_run_that_was_formed_and_never_started(world: HeavyWorld) -> None:
    world.emr.refusals = ["ThrottlingException"]
    start_run(world, "a")
    lose_request(world)
    world.reconcile()
    world.dispatch()
    assert [run["name"][-1] for run in world.emr.runs.values()] == ["1"]


@pytest.mark.rule("10.reconcile.end")
def test_a_run_whose_event_was_lost(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.write_results(1, [done_result(0, 1)])
    world.set_state("run1", "SUCCESS", event=False)
    world.reconcile()
    assert world.complete() == 1
    assert [body["payload"] for body in world.bodies("publish")] == [1]


@pytest.mark.rule("10.reconcile.end")
def test_an_event_whose_routing_was_lost(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.write_results(1, [done_result(0, 1)])
    world.set_state("run1", "SUCCESS")
    world.receive("x-completion")  # the completion failed at its last receive
    world.reconcile()
    assert world.complete() == 1
    assert [body["payload"] for body in world.bodies("publish")] == [1]


def test_a_rejected_run_whose_event_was_lost(world: HeavyWorld) -> None:
    world.emr.refusals = ["ValidationException"]
    start_run(world, "a")
    world.receive("x-completion")
    world.reconcile()
    world.complete()
    assert [body["status"]["error"]["type"] for body in world.bodies("clean")] == ["SparkJobFailed"]


@pytest.mark.rule("10.reconcile.end")
def test_a_run_that_emr_no_longer_knows_has_failed(world: HeavyWorld) -> None:
    world.send("a", actor="stats")
    world.enqueue("stats")
    world.dispatch()
    world.emr.forgotten.add("run1")

    world.reconcile()
    assert world.complete() == 1

    (failed,) = world.bodies("x-sink")
    error = failed["status"]["error"]
    assert (failed["id"], error["type"]) == ("a", "SparkJobFailed")
    assert "EMR Serverless no longer knows the run" in error["message"]
    assert world.items("OPEN#") == []


def test_a_run_that_goes_on_is_left_alone_and_so_is_a_closed_one(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.reconcile()
    world.write_results(1, [done_result(0, 1)])
    world.set_state("run1", "SUCCESS")
    world.complete()
    world.reconcile()
    assert (world.dispatch(), world.complete()) == (0, 0)


def test_a_young_run_is_not_queried(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    start_run(world, "a")
    world.set_state("run1", "SUCCESS", event=False)
    monkeypatch.setattr(spark_reconcile, "MIN_AGE", timedelta(minutes=1))
    world.reconcile()
    assert world.complete() == 0


@pytest.mark.rule("10.reconcile.quota")
def test_the_quota_of_queries_is_kept_and_every_run_gets_its_turn(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        start_run(world, *(f"{number}-{letter}" for letter in "abc"))
    monkeypatch.setattr(spark_reconcile, "RUNS_PER_SWEEP", 3)
    monkeypatch.setattr(spark_reconcile, "RUNS_BETWEEN_PAUSES", 2)
    queries: list[str] = []
    pauses: list[float] = []
    get_job_run = world.emr.get_job_run

    def record_query(**parameters: str) -> Any:
        queries.append(parameters["jobRunId"])
        return get_job_run(**parameters)

    monkeypatch.setattr(world.emr, "get_job_run", record_query)
    numbers = iter([0.0, 0.0, 0.5])  # the other actor draws a number too

    class Environment:
        def __init__(self, real: Any) -> None:
            self._real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def random(self) -> float:
            return next(numbers, 0.0)

        def sleep(self, seconds: float) -> None:
            pauses.append(seconds)

    services = world.services_of("x-reconcile")
    object.__setattr__(services.base, "environment", Environment(services.base.environment))
    for _ in range(2):
        spark_reconcile.Reconciler(services).sweep()

    assert queries == [f"run{number}" for number in range(1, 7)]
    assert pauses == [1.0, 1.0]


def test_an_error_with_one_actor_does_not_affect_the_others(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(name for name, actor in TABLE.actors.items() if actor.kind == "spark")[0] == "clean"
    world.send("s", actor="stats")
    world.enqueue("stats")
    world.receive("x-dispatch")
    world.services.requests.clear("stats")
    services = world.services_of("x-reconcile")
    count = services.pending.count

    def throttled_count(actor: str) -> int:
        if actor == "clean":
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "busy"}}, "Query")
        return count(actor)

    monkeypatch.setattr(services.pending, "count", throttled_count)
    spark_reconcile.Reconciler(services).sweep()
    assert world.dispatch() == 1


@pytest.mark.rule("15.RunsQueued", "15.RunsRunning", "15.RunDelay", "15.Sweeps", "15.nothing")
def test_15_open_runs_are_measured(world: HeavyWorld, capsys: pytest.CaptureFixture[str]) -> None:
    start_run(world, "a")
    world.reconcile()
    found = metrics(capsys)
    assert metric_values(found, "RunsQueued", actor="clean") == [1]
    assert metric_values(found, "RunsRunning", actor="clean") == [0]
    assert metric_values(found, "RunsQueued", actor="stats") == []
    assert metric_values(found, "Sweeps", actor="x-reconcile") == [1]
    (delay,) = metric_values(found, "RunDelay", actor="clean")
    assert delay >= 0
    world.set_state("run1", "RUNNING")
    world.complete()
    world.reconcile()
    found = metrics(capsys)
    assert metric_values(found, "RunsQueued", actor="clean") == [0]
    assert metric_values(found, "RunsRunning", actor="clean") == [1]
    assert metric_values(found, "RunDelay", actor="clean") == [0]
    world.write_results(1, [done_result(0)])
    world.set_state("run1", "SUCCESS")
    world.complete()
    world.reconcile()
    found = metrics(capsys)
    for name in ("PendingEnvelopes", "RunsQueued", "RunsRunning", "RunDelay"):
        assert metric_values(found, name) == []


@pytest.mark.rule("15.RunDelay")
def test_15_the_delay_of_envelopes_without_capacity_spans_their_runs(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start_run(world, "a")
    start = world.services.now()
    hours = 0

    def now(_: object) -> datetime:
        return start + timedelta(hours=hours)

    monkeypatch.setattr("asya.heavy.lambdas.services.SparkServices.now", now)
    for number in (1, 2):
        hours = 6 * number
        world.set_state(f"run{number}", "FAILED", details="Job run reached its queue timeout of 360 minutes")
        world.complete()
        world.services.requests.clear("clean")
        world.services.requests.ensure("clean", 0, now=world.services.now())
        enqueue_ids(world, f"new{number}")
        world.dispatch()

    metrics(capsys)
    world.reconcile()
    (delay,) = metric_values(metrics(capsys), "RunDelay", actor="clean")
    assert delay == pytest.approx(12 * 3600, abs=60)


@pytest.mark.rule("15.RunDelay")
@pytest.mark.parametrize(
    ("heartbeat", "minutes", "delay"),
    [
        ({"executors": 0}, 19, 19 * 60),  # EMR Serverless gives it up a minute later
        ({"executors": 0}, 31, 0),  # it has not given it up, so there was one
        ({"executors": 1}, 19, 0),
        ({}, 19, 0),  # an earlier deployment started it, or Spark is local
        (None, 19, 0),
    ],
)
def test_15_the_delay_counts_a_driver_without_executors(
    world: HeavyWorld,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    heartbeat: dict[str, int] | None,
    minutes: int,
    delay: float,
) -> None:
    start_run(world, "a")
    world.set_state("run1", "RUNNING")
    world.complete()
    if heartbeat is not None:
        body = json.dumps({"at": "2026-01-01T00:00:00Z", "beat": 1, **heartbeat}).encode()
        world.s3.put_object(Bucket=BUCKET, Key="runs/clean/0000000001/attempts/a1/heartbeat-1.json", Body=body)
    later = world.services.now() + timedelta(minutes=minutes)
    monkeypatch.setattr("asya.heavy.lambdas.services.SparkServices.now", lambda _: later)
    metrics(capsys)
    world.reconcile()
    assert metric_values(metrics(capsys), "RunDelay", actor="clean") == [pytest.approx(delay, abs=60)]


@pytest.mark.rule("15.Sweeps")
def test_15_a_sweep_with_an_error_is_not_finished(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def throttled(*_: Any) -> Any:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "as requested"}}, "Query")

    monkeypatch.setattr(spark_reconcile.Reconciler, "_count_pending", throttled)
    world.reconcile()
    assert metric_values(metrics(capsys), "Sweeps") == []
