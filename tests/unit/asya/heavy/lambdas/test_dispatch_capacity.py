"""Runs wait for a busy EMR Serverless and take more envelopes meanwhile (`protocol §10`)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.heavy.aws.dispatch_requests import DispatchRequest, decode_request
from asya.heavy.lambdas.dispatch import Dispatcher
from tests.doubles.dispatching import dispatch_now, enqueue_ids, waiting_requests
from tests.doubles.heavy import TABLE, HeavyWorld, done_result, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


@pytest.mark.rule("10.grow")
@pytest.mark.parametrize("state", ["SUBMITTED", "PENDING", "QUEUED"])
def test_a_run_that_is_not_full_waits_while_the_previous_one_waits_for_capacity(world: HeavyWorld, state: str) -> None:
    enqueue_ids(world, "a")
    world.dispatch()
    world.set_state("run1", state, event=False)

    for envelope_id in "bc":
        enqueue_ids(world, envelope_id)
        world.dispatch()
    assert len(world.emr.runs) == 1
    assert waiting_requests(world) == {"due": "0", "delayed": "1"}

    world.set_state("run1", "SCHEDULED")
    world.complete()
    assert world.dispatch() == 1
    assert [member.id for member in world.manifest(2).members] == ["b", "c"]


def test_a_full_run_queues_at_once(world: HeavyWorld) -> None:
    enqueue_ids(world, "a")
    world.dispatch()
    world.set_state("run1", "QUEUED", event=False)

    enqueue_ids(world, "b", "c", "d")
    world.dispatch()

    assert len(world.emr.runs) == 2


def test_an_unknown_capacity_delays_no_run(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    enqueue_ids(world, "a")
    world.dispatch()
    enqueue_ids(world, "b")

    def throttled(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "busy"}}, "GetJobRun")

    monkeypatch.setattr(world.emr, "get_job_run", throttled)
    world.dispatch()

    assert len(world.emr.runs) == 2


@pytest.mark.rule("10.busy.no-receive")
def test_while_emr_throttles_there_is_always_one_request_and_the_run_starts_once(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[DispatchRequest, int]] = []

    def send(**message: Any) -> None:
        sent.append((decode_request(message["MessageBody"].encode()), message["DelaySeconds"]))

    enqueue_ids(world, "a", "b")
    world.services.requests.clear("clean")
    monkeypatch.setattr(world.sqs, "send_message", send)
    world.services.requests.ensure("clean", 0, now=datetime.now(UTC))
    world.emr.refusals = ["ThrottlingException", "ServiceQuotaExceededException"] * 5
    dispatcher = Dispatcher(world.services_of("x-dispatch"))
    dispatches = 0
    while not world.emr.runs:
        dispatches += 1
        assert len(sent) == dispatches  # each dispatch without a start sends one request
        dispatcher.dispatch(sent[-1][0], TABLE.actors["clean"])
        assert dispatches < 30
    assert dispatches == 11
    assert all(1 <= seconds <= 25 for _, seconds in sent[1:])
    assert [run["name"][-1] for run in world.emr.runs.values()] == ["1"]
    assert [member.id for member in world.manifest(1).members] == ["a", "b"]


@pytest.mark.rule("10.grow")
def test_envelopes_that_arrive_meanwhile_share_the_next_run(world: HeavyWorld) -> None:
    enqueue_ids(world, "a")
    world.emr.refusals = ["ThrottlingException"] * 2
    for envelope_id in ("b", "c"):
        world.dispatch()
        world.services.requests.clear("clean")
        enqueue_ids(world, envelope_id)
    while world.dispatch():
        pass

    assert [[member.id for member in world.manifest(number).members] for number in (1, 2)] == [["a"], ["b", "c"]]


def test_a_request_counts_as_lost_only_after_its_delay(world: HeavyWorld) -> None:
    moment = datetime.now(UTC)
    world.services.requests.ensure("clean", 900, now=moment)
    assert world.services.requests.is_requested("clean", now=moment + timedelta(seconds=950))


@pytest.mark.rule("10.busy.no-room")
def test_a_lack_of_capacity_is_no_failure_and_charges_no_envelope(world: HeavyWorld) -> None:
    enqueue_ids(world, "a", "b")
    world.dispatch()
    world.set_state(
        "run1",
        "FAILED",
        details="ApplicationMaxCapacityExceededException: Worker could not be allocated",
    )
    world.complete()

    assert world.bodies("clean") == []
    assert waiting_requests(world) == {"due": "0", "delayed": "1"}
    assert world.services.records.failures("clean", 1) == 0
    world.services.requests.clear("clean")
    world.services.requests.ensure("clean", 0, now=datetime.now(UTC))
    world.dispatch()
    assert [(member.id, member.attempt) for member in world.manifest(2).members] == [("a", 1), ("b", 1)]


@pytest.mark.rule("10.busy.no-room")
def test_a_run_without_an_executor_charges_no_envelope_and_keeps_its_results(world: HeavyWorld) -> None:
    enqueue_ids(world, "a", "b")
    world.dispatch()
    world.write_results(1, [done_result(0, {"rows": 3})], end="journal", at_work=1)
    world.set_state(
        "run1",
        "FAILED",
        details="Abandoning job due to no executor being launched within 1200000ms after driver starts.",
    )
    world.complete()

    assert [body["id"] for body in world.bodies("publish")] == ["a"]
    assert world.bodies("clean") == []
    assert world.services.records.failures("clean", 1) == 0
    world.services.requests.clear("clean")
    world.services.requests.ensure("clean", 0, now=datetime.now(UTC))
    world.dispatch()
    assert [(member.id, member.attempt) for member in world.manifest(2).members] == [("b", 1)]


@pytest.mark.rule("10.busy.no-executor")
def test_runs_without_an_executor_are_bounded_and_the_error_says_why(world: HeavyWorld) -> None:
    world.send("a", actor="stats")
    world.enqueue("stats")
    reason = "Abandoning job due to no executor being launched within 1200000ms after driver starts."
    for number in (1, 2, 3):
        assert world.bodies("x-sink") == []
        dispatch_now(world, "stats")
        world.write_results(number, [], actor="stats", end="journal", at_work=0)
        world.set_state(f"run{number}", "FAILED", details=reason)
        world.complete()

    (failed,) = world.bodies("x-sink")
    error = failed["status"]["error"]
    assert (error["type"], failed["status"]["attempt"]) == ("SparkJobFailed", 1)
    assert reason.rstrip(".") in error["message"]
    assert "3 runs in a row without an executor" in error["message"]
    dispatch_now(world, "stats")
    assert len(world.emr.runs) == 3
    assert world.items("OPEN#") == world.items("PENDING#") == []
