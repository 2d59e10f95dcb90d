"""protocol §15: the metrics of each function, read from its log."""

from collections.abc import Iterator
from typing import Any

import pytest

from asya import registry
from asya.ends.lambdas.wiring import build_sump
from asya.function.aws import clients
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol.mesh_table import CircuitBreaker, Policy, Resiliency
from asya.protocol.times import format_time
from asya.testing.dynamo.tables import MemoryDynamo, Table
from asya.testing.services.queues import Refusal
from tests.doubles.emf import Metric, metric_values, metrics
from tests.doubles.envelopes import message, status
from tests.doubles.heavy import HeavyWorld, done_result, failed_result, heavy_world
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event
from tests.doubles.pipeline import Pipeline
from tests.doubles.task_states import SILENT
from tests.unit.memory_tables import memory_tables

OF_LIGHT_ACTORS = {
    "TimeToResult",
    *("Received", "Processed", "Sent", "Failed", "Retried", "SlaExpired", "HandlerDuration", "HopLatency"),
    *("MessageSize", "InFlight", "HopLimit"),
}
OF_HEAVY_ACTORS = {"PendingEnvelopes", "JobRuns", "EnvelopesPerRun"}


def echo(payload: Any) -> Any:
    return payload


def fails(_: Any) -> None:
    raise ValueError("no")


def run(world: MeshWorld, handler: Any, *bodies: bytes, **options: Any) -> None:
    assert batch_failures(build_sidecar(world.light(handler, **options)).process(sqs_event(*bodies))) == []


def check_dimensions(found: list[Metric], actors: set[str]) -> None:
    """Nothing but namespace, actor and at most the one dimension that the metric is split by."""
    for metric in found:
        declared = registry.PRODUCT.metrics[metric.name]
        assert metric.dimensions.keys() == {"namespace", "actor", *filter(None, [declared.split])}, metric
        assert metric.dimensions["actor"] in actors
        assert metric.unit == declared.unit


@pytest.mark.rule("15.HopLimit")
def test_15_a_light_mesh_gives_every_metric_of_light_actors(
    world: MeshWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = Pipeline(world, {"prep": echo, "infer": fails}, {"resiliency": RETRIED})
    ran.send("prep", message(route={"prev": [], "curr": "prep", "next": ["infer", "post"]}))
    ran.send("infer", message(id="late", status=status(deadline_at="2020-01-01T00:00:00Z")))
    ran.send("infer", message(id="looping", route={"prev": ["prep"] * 1000, "curr": "infer", "next": []}))
    found = metrics(capsys)
    assert {metric.name for metric in found} == OF_LIGHT_ACTORS
    check_dimensions(found, {"prep", "infer", "x-sink", "x-sump"})
    assert {metric.dimensions["namespace"] for metric in found} == {"shop"}


RETRIED = Resiliency(policies={"default": Policy(max_attempts=2, initial_delay=0)})


@pytest.mark.rule("15.HandlerDuration", "15.HopLatency", "15.InFlight", "15.MessageSize", "15.Received", "15.Sent")
def test_15_a_batch_that_comes(world: MeshWorld, capsys: pytest.CaptureFixture[str]) -> None:
    bodies = [message(id=f"env-{number}") for number in range(3)]
    run(world, echo, *bodies)
    found = metrics(capsys)
    assert metric_values(found, "Received", actor="infer") == [3]
    assert metric_values(found, "InFlight") == [3]
    assert metric_values(found, "MessageSize") == [len(body) for body in bodies]
    assert len(metric_values(found, "HopLatency")) == 3
    assert min(metric_values(found, "HopLatency")) >= 0
    assert metric_values(found, "Processed", outcome="succeeded") == [3]
    assert metric_values(found, "Sent", kind="next") == [3]
    assert len(metric_values(found, "HandlerDuration")) == 3


@pytest.mark.rule("15.Processed")
def test_15_how_a_hop_ends(world: MeshWorld, capsys: pytest.CaptureFixture[str]) -> None:
    def crashes(_: Any) -> None:
        raise SystemExit

    def never(_: Any) -> None:
        while True:
            pass

    for handler in (echo, fails, crashes):
        run(world, handler, message())
    run(world, never, message(), timeout=0.1)
    run(world, echo, message(route={"prev": [], "curr": "post", "next": []}))
    found = metrics(capsys)
    outcomes = {metric.dimensions["outcome"]: sum(metric.values) for metric in found if metric.name == "Processed"}
    assert outcomes == dict.fromkeys(("succeeded", "failed", "crashed", "timed_out", "diverted"), 1)


@pytest.mark.rule("15.Retried", "15.Sent")
def test_15_retries(world: MeshWorld, capsys: pytest.CaptureFixture[str]) -> None:
    run(world, fails, message(), resiliency=RETRIED)
    found = metrics(capsys)
    assert metric_values(found, "Retried", actor="infer") == [1]
    assert metric_values(found, "Sent", kind="retry") == [1]


@pytest.mark.rule("15.SlaExpired")
@pytest.mark.slow
def test_15_deadlines_before_and_within_the_handler(world: MeshWorld, capsys: pytest.CaptureFixture[str]) -> None:
    def never(_: Any) -> None:
        while True:
            pass

    now = world.services("infer").now()
    soon = format_time(now.fromtimestamp(now.timestamp() + 1.2, now.tzinfo))
    late = message(status=status(deadline_at="2020-01-01T00:00:00Z"))
    run(world, never, late, message(id="b", status=status(deadline_at=soon)))
    assert metric_values(metrics(capsys), "SlaExpired", actor="infer") == [2]


@pytest.mark.rule("15.HandlerDuration")
def test_15_a_rejected_hop_has_no_duration(
    world: MeshWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = MemoryDynamo({"asya-shop-breaker": Table()})
    monkeypatch.setattr(clients, "dynamodb", lambda: tables)
    breaker = Resiliency(circuit_breaker=CircuitBreaker(failures=1, window=60, open_for=60))
    run(world, fails, message(), message(id="b"), resiliency=breaker)
    found = metrics(capsys)
    assert metric_values(found, "Processed", outcome="rejected") == [1]
    assert len(metric_values(found, "HandlerDuration")) == 1


@pytest.mark.rule("15.Failed")
def test_15_failures_are_the_failing_actors(world: MeshWorld, capsys: pytest.CaptureFixture[str]) -> None:
    ended = status(phase="failed", reason="Timeout", actor="infer")
    hostile = status(phase="failed", reason="an id or whatever", actor="made-up")
    actor = build_sump(world.services("x-sump"))
    assert batch_failures(actor.process(sqs_event(message(status=ended), message(id="b", status=hostile)))) == []
    found = [metric.dimensions for metric in metrics(capsys) if metric.name == "Failed"]
    assert sorted(found, key=lambda dimensions: dimensions["actor"]) == [
        {"namespace": "shop", "actor": "infer", "reason": "Timeout"},
        {"namespace": "shop", "actor": "x-sump", "reason": "RuntimeError"},
    ]


@pytest.mark.rule("15.ReportsDropped")
def test_15_progress_that_was_dropped(world: MeshWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.sqs.refuse_always["asya-shop-x-reports"] = Refusal("call")
    run(world, echo, message())
    assert sum(metric_values(metrics(capsys), "ReportsDropped", actor="infer")) == 3


@pytest.mark.rule("15.PreflightsSkipped")
def test_15_a_pre_flight_that_is_skipped(world: MeshWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.state_reads.error = SILENT
    actor = build_sidecar(world.light(echo))
    for _ in range(3):
        assert batch_failures(actor.process(sqs_event(message()))) == []
    assert metric_values(metrics(capsys), "PreflightsSkipped", actor="infer") == [1, 1]


# --- heavy actors


@pytest.fixture
def heavy(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with memory_tables(), heavy_world(monkeypatch) as made:
        yield made


@pytest.mark.rule("15.EnvelopesPerRun", "15.JobRuns", "15.PendingEnvelopes")
def test_15_a_heavy_actor_gives_its_own(heavy: HeavyWorld, capsys: pytest.CaptureFixture[str]) -> None:
    for envelope_id in "abc":
        heavy.send(envelope_id, {"n": 1})
    heavy.send("late", status={"deadline_at": "2020-01-01T00:00:00Z"})
    heavy.enqueue()
    heavy.reconcile()
    heavy.dispatch()
    heavy.set_state("run1", "RUNNING")
    heavy.write_results(1, [done_result(0, {"rows": 1}), failed_result(1), done_result(2)])
    heavy.set_state("run1", "SUCCESS")
    heavy.complete()
    found = metrics(capsys)
    assert {metric.name for metric in found} >= OF_HEAVY_ACTORS
    check_dimensions(found, {"clean", "stats", "x-dispatch", "x-completion", "x-reconcile"})
    assert metric_values(found, "Received", actor="clean") == [4]
    assert len(metric_values(found, "HopLatency", actor="clean")) == 4
    assert metric_values(found, "SlaExpired", actor="clean") == [1]
    assert metric_values(found, "PendingEnvelopes", actor="clean") == [3]
    assert metric_values(found, "EnvelopesPerRun", actor="clean") == [3]
    states = [metric.dimensions["state"] for metric in found if metric.name == "JobRuns"]
    assert sorted(states) == ["running", "started", "success"]
    assert {metric.dimensions["actor"] for metric in found if metric.name == "JobRuns"} == {"clean"}
    assert metric_values(found, "Processed", actor="clean", outcome="succeeded") == [2]
    assert metric_values(found, "Processed", actor="clean", outcome="pending") == [3]
    assert len(metric_values(found, "HandlerDuration", actor="clean")) == 3


@pytest.mark.rule("15.PendingEnvelopes")
def test_15_many_pending_are_counted_to_a_limit(heavy: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asya.heavy.aws.pending.COUNT_LIMIT", 2)
    for envelope_id in "abcdef":
        heavy.send(envelope_id)
    heavy.enqueue()
    assert 2 <= heavy.services.pending.count("clean") < 6
    assert heavy.services.pending.count("nobody") == 0
