"""The heavy path from queue to queue, on moto (`protocol §10`)."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from asya.heavy.lambdas.enqueue import Enqueuer
from asya.protocol.events import TaskEvent
from tests.doubles.dispatching import start_run
from tests.doubles.heavy import BUCKET, TABLE, HeavyWorld, done_result, failed_result, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


@pytest.mark.rule("10.reports")
def test_from_the_queue_through_a_run_to_the_next_queue(world: HeavyWorld) -> None:
    start_run(world, "a", "b")

    manifest = world.manifest(1)
    assert [member.id for member in manifest.members] == ["a", "b"]
    assert world.emr.runs["run1"]["name"] == "asya.flights.clean.0000000001"
    assert world.items("PENDING#") == []
    assert world.reported_ids("received") == ["a", "b"]

    world.set_state("run1", "RUNNING")
    world.complete()
    assert world.reported_ids("processing") == ["a", "b"]
    world.write_results(1, [done_result(0, {"rows": 1}), done_result(1)])
    world.set_state("run1", "SUCCESS")
    world.complete()

    (moved,) = world.bodies("publish")
    assert (moved["id"], moved["payload"]) == ("a", {"rows": 1})
    assert moved["route"] == {"prev": ["clean"], "curr": "publish", "next": []}
    (ended,) = world.bodies("x-sink")
    assert (ended["id"], ended["status"]["phase"], ended["payload"]) == ("b", "succeeded", {"n": "b"})
    assert world.reported_ids("completed") == ["a", "b"]
    assert world.items("OPEN#") == []


@pytest.mark.rule("10.admit.once")
def test_a_redelivery_is_pending_once_but_asks_again(world: HeavyWorld) -> None:
    world.send("a")
    event = world.enqueue()
    again = {"Records": [{**record, "messageId": "other"} for record in event["Records"]]}
    world.services.requests.clear("clean")
    Enqueuer(world.services_of("clean")).process(again)

    assert len(world.items("PENDING#clean")) == 1
    assert world.dispatch() == 2
    assert len(world.emr.runs) == 1


def test_a_large_envelope_waits_in_s3(world: HeavyWorld) -> None:
    world.send("large", {"text": "x" * 9000})
    event = world.enqueue()
    (item,) = world.items("PENDING#clean")
    assert len(json.dumps(str(item))) < 2000
    world.dispatch()
    (member,) = world.manifest(1).members
    assert member.envelope_key is not None
    before = world.s3.get_object(Bucket=BUCKET, Key=member.envelope_key)["Body"].read()

    Enqueuer(world.services_of("clean")).process(
        event
    )  # stamps the envelope again; the manifest's object must not change

    assert world.s3.get_object(Bucket=BUCKET, Key=member.envelope_key)["Body"].read() == before
    world.write_results(1, [failed_result(0)])
    world.set_state("run1", "SUCCESS")
    world.complete()
    (retry,) = world.bodies("clean")
    assert (retry["status"]["attempt"], retry["payload"]["text"]) == (2, "x" * 9000)


@pytest.mark.parametrize(
    "detail",
    [
        {"jobRunName": "another job"},
        {"jobRunName": "asya.other-mesh.clean.0000000001"},
        {"jobRunName": "asya.flights.clean.0000000009"},
        {"applicationId": "another"},
        {"state": "QUEUED"},
    ],
)
def test_events_about_something_else_are_acked(world: HeavyWorld, detail: dict[str, str]) -> None:
    base = {"applicationId": "00app", "jobRunId": "x", "jobRunName": "asya.flights.clean.0000000001", "state": "FAILED"}
    event = {"detail-type": "EMR Serverless Job Run State Change", "detail": base | detail}
    world.put("x-completion", json.dumps(event))
    world.put("x-completion", "no json")
    world.put("x-dispatch", "no json")

    assert world.complete() == 2
    assert world.dispatch() == 1


def test_the_sweep_finds_what_was_lost(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.send("a")
    world.enqueue()
    world.receive("x-dispatch")  # the request is lost
    world.services.requests.clear("clean")

    world.reconcile()
    assert world.dispatch() == 1

    world.write_results(1, [done_result(0, 1)])
    world.set_state("run1", "SUCCESS", event=False)  # the event is lost
    monkeypatch.setattr("asya.heavy.lambdas.reconcile.MIN_AGE", timedelta(0))
    world.reconcile()
    assert world.complete() == 1
    assert [body["payload"] for body in world.bodies("publish")] == [1]

    world.reconcile()
    assert (world.dispatch(), world.complete()) == (0, 0)


def test_the_mesh_of_these_tests_has_a_default_policy_for_one_of_them() -> None:
    assert TABLE.actors["clean"].resiliency.policies
    assert not TABLE.actors["stats"].resiliency.policies


@pytest.mark.rule("13.problem.senders")
def test_a_dispatch_queue_that_refuses_requests_is_a_problem_of_the_tasks(world: HeavyWorld) -> None:
    world.send("a", {"n": 1})
    event = world.receive("clean")
    world.sqs.delete_queue(QueueUrl=world.services.settings.queue_url("x-dispatch"))
    assert len(Enqueuer(world.services_of("clean")).process(event)["batchItemFailures"]) == 1
    (problem,) = (
        report.data.problem
        for report in world.gateway.events
        if isinstance(report, TaskEvent) and report.data.problem is not None
    )
    assert problem.message.startswith("the queue of x-dispatch (asya-flights-x-dispatch) refuses messages of clean: ")
