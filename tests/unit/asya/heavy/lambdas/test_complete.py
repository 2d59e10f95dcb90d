"""The completion trusts the state of the job run, not the event that reports it (`protocol §10`)."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_fields

from asya.heavy.aws.run_records import RunRecord, RunRecords
from asya.heavy.lambdas.complete import Completion
from asya.protocol.events import TaskEvent
from tests.doubles.heavy import APPLICATION, TABLE, HeavyWorld, TimedContext, done_result, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        heavy.send("a", {"n": 1})
        heavy.enqueue()
        heavy.dispatch()
        yield heavy


@pytest.mark.rule("10.secrets.unreadable")
def test_10_a_run_without_its_secret_fails_its_envelopes_together(world: HeavyWorld) -> None:
    """Its commit names the secret. No envelope is suspected, and no further run is started for a half of them."""
    for name in ("b", "c"):
        world.send(name, actor="stats")
    world.enqueue("stats")
    world.dispatch()
    message = "the secret 'shop/key' for the variable SHOP_KEY cannot be read (AccessDeniedException)"
    world.write_results(1, [], actor="stats", error={"type": "asya_spark.secrets.SecretError", "message": message})
    world.set_state("run2", "SUCCESS")
    world.complete()
    errors = {body["id"]: body["status"]["error"]["message"] for body in world.bodies("x-sink")}
    assert errors == {"b": message, "c": message}
    assert world.items("PENDING#stats") == []
    assert len(world.emr.runs) == 2


def put_event(world: HeavyWorld, **detail: str) -> None:
    known = {"applicationId": APPLICATION, "jobRunId": "run1", "jobRunName": world.emr.runs["run1"]["name"]}
    event: dict[str, Any] = {"detail-type": "EMR Serverless Job Run State Change", "detail": {**known, **detail}}
    world.put("x-completion", json.dumps(event))


def is_open(world: HeavyWorld) -> bool:
    record = world.services.records.get("clean", 1)
    return record is not None and record.state != "closed"


@pytest.mark.rule("10.event-of-a-run")
@pytest.mark.parametrize("state", ["FAILED", "SUCCESS", "CANCELLED"])
def test_an_end_that_the_job_run_denies_changes_nothing(world: HeavyWorld, state: str) -> None:
    world.set_state("run1", "RUNNING", event=False)
    put_event(world, state=state)
    world.complete()
    assert is_open(world)
    assert world.bodies("x-sink") == []

    # The true end is routed at once: the false one left no lease.
    world.write_results(1, [done_result(0, {"n": 2})])
    world.set_state("run1", "SUCCESS")
    world.complete()
    assert not is_open(world)


@pytest.mark.rule("10.event-of-a-run")
def test_the_end_of_another_job_run_does_not_end_this_one(world: HeavyWorld) -> None:
    world.emr.runs["run9"] = {"name": "someone-else", "state": "FAILED", "stateDetails": ""}
    world.set_state("run1", "RUNNING", event=False)
    world.services.records.get("clean", 1)
    put_event(world, state="FAILED", jobRunId="run9")
    world.complete()
    assert is_open(world)


@pytest.mark.rule("10.event-of-a-run")
def test_the_state_of_the_job_run_counts_not_that_of_the_event(world: HeavyWorld) -> None:
    world.write_results(1, [done_result(0, {"n": 2})])
    world.set_state("run1", "SUCCESS", event=False)
    put_event(world, state="FAILED")
    world.complete()
    record = world.services.records.get("clean", 1)
    assert record is not None
    assert (record.state, world.services.manifests.read("clean", 1) is not None) == ("closed", True)


@pytest.mark.rule("10.event-of-a-run", "10.death.told")
def test_the_details_are_those_of_the_job_run_not_of_the_event(world: HeavyWorld) -> None:
    """Any sender may choose the words of an event, and a reason such as a lack of capacity decides on the envelopes."""
    world.set_state("run1", "FAILED", details="ExitCode: 1", event=False)
    put_event(world, state="FAILED", stateDetails="ApplicationMaxCapacityExceededException: call 555-0100")
    world.complete()
    (body,) = world.bodies("clean")
    assert "ended FAILED: ExitCode: 1" in body["status"]["error"]["message"]
    assert "555-0100" not in str(body)
    record = world.services.records.get("clean", 1)
    assert record is not None
    assert (record.state, record.details) == ("closed", "ExitCode: 1")


@pytest.mark.rule("10.event-of-a-run")
def test_a_later_event_does_not_replace_the_details(world: HeavyWorld) -> None:
    """The usage is recorded, so the state of the job run is not read again."""
    world.set_state("run1", "FAILED", details="ExitCode: 1", event=False)
    world.emr.runs["run1"]["totalResourceUtilization"] = {"vCPUHour": 1.0, "memoryGBHour": 1.0, "storageGBHour": 0.0}
    put_event(world, state="FAILED")
    event = world.receive("x-completion")
    Completion(world.services_of("x-completion"), TimedContext()).process(event)
    put_event(world, state="FAILED", stateDetails="call 555-0100")
    world.complete()
    record = world.services.records.get("clean", 1)
    assert record is not None
    assert record.details == "ExitCode: 1"


@pytest.mark.rule("10.event-of-a-run")
def test_an_event_without_a_job_run_does_not_end_a_run_that_goes_on(world: HeavyWorld) -> None:
    """Only a run that EMR Serverless rejected has no job run."""
    world.set_state("run1", "RUNNING", event=False)
    put_event(world, state="FAILED", jobRunId="", stateDetails="call 555-0100")
    world.complete()
    assert is_open(world)
    assert world.bodies("clean") == []


@pytest.mark.rule("10.event-of-a-run")
def test_the_details_of_the_event_count_for_a_job_run_that_emr_no_longer_knows(world: HeavyWorld) -> None:
    world.emr.forgotten.add("run1")
    put_event(world, state="FAILED", stateDetails="ExitCode: 1")
    world.complete()
    (body,) = world.bodies("clean")
    assert "ended FAILED: ExitCode: 1" in body["status"]["error"]["message"]


@pytest.mark.rule("10.event-of-a-run")
def test_an_unknown_job_run_does_not_end_a_run_that_goes_on(world: HeavyWorld) -> None:
    world.set_state("run1", "RUNNING", event=False)
    put_event(world, state="FAILED", jobRunId="run9")
    world.complete()
    assert is_open(world)


@pytest.mark.rule("10.event-of-a-run")
@pytest.mark.parametrize("recorded", [None, ""])
def test_an_unknown_job_run_does_not_end_a_run_that_has_none(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch, recorded: str | None
) -> None:
    """Before its start is recorded, only a job run that EMR Serverless knows ends a run."""
    get = RunRecords.get

    def without_job_run(self: RunRecords, actor: str, number: int) -> RunRecord | None:
        record = get(self, actor, number)
        return None if record is None else replace(record, job_run_id=recorded)

    monkeypatch.setattr(RunRecords, "get", without_job_run)
    put_event(world, state="FAILED", jobRunId="run9")
    world.complete()
    assert is_open(world)


@pytest.mark.rule("10.double", "10.reconcile.end")
def test_a_second_job_run_counts_once_emr_no_longer_knows_the_first(world: HeavyWorld) -> None:
    world.emr.runs["double"] = {**world.emr.runs["run1"], "state": "FAILED", "stateDetails": "killed"}
    world.emr.forgotten.add("run1")
    put_event(world, state="FAILED", jobRunId="double")
    world.complete()
    assert not is_open(world)


def test_a_canceled_task_of_a_run_that_emr_no_longer_knows(world: HeavyWorld) -> None:
    world.gateway.canceled.add("a")
    world.emr.forgotten.add("run1")
    world.put("x-completion", json.dumps({"detail-type": "asya.task-canceled", "detail": {"taskId": "a"}}))
    assert world.complete() == 1
    assert world.emr.canceled == []


def test_the_end_of_a_run_of_a_removed_actor_is_recorded_and_its_message_is_kept(world: HeavyWorld) -> None:
    world.write_results(1, [done_result(0, {"n": 2})])
    world.set_state("run1", "SUCCESS")
    world.table = replace_fields(TABLE, actors={"stats": TABLE.actors["stats"]})
    event = world.receive("x-completion")
    kept = [{"itemIdentifier": record["messageId"]} for record in event["Records"]]

    completion = Completion(world.services_of("x-completion"), TimedContext())
    assert completion.process(event) == {"batchItemFailures": kept}

    record = world.services.records.get("clean", 1)
    assert record is not None
    assert (record.state, record.job_state, record.resolution) == ("started", "SUCCESS", None)

    # After the actor is deployed again, a redriven message routes the results.
    world.table = TABLE
    put_event(world, state="SUCCESS")
    world.complete()
    assert [body["id"] for body in world.bodies("publish")] == ["a"]


@pytest.mark.rule("10.event-of-a-run")
def test_an_event_without_a_job_run_does_not_end_a_run_that_waits_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with heavy_world(monkeypatch) as world:
        world.send("a", {"n": 1})
        world.emr.refusals = ["ThrottlingException"]
        world.enqueue()
        world.dispatch()
        detail = {"applicationId": APPLICATION, "jobRunId": "", "jobRunName": "asya.flights.clean.0000000001"}
        detail |= {"state": "FAILED", "stateDetails": "call 555-0100"}
        world.put("x-completion", json.dumps({"detail-type": "EMR Serverless Job Run State Change", "detail": detail}))
        world.complete()
        record = world.services.records.get("clean", 1)
        assert record is not None
        assert record.state == "formed"
        assert world.bodies("clean") == []


@pytest.mark.rule("13.problem.senders")
def test_a_queue_that_refuses_results_is_a_problem_of_their_tasks(world: HeavyWorld) -> None:
    url = world.services.settings.queue_url("publish")
    world.sqs.delete_queue(QueueUrl=url)
    world.write_results(1, [done_result(0, {"rows": 1})])
    world.set_state("run1", "SUCCESS")
    event = world.receive("x-completion")
    answer = Completion(world.services_of("x-completion"), TimedContext()).process(event)
    assert len(answer["batchItemFailures"]) == 1
    (problem,) = (
        report.data.problem
        for report in world.gateway.events
        if isinstance(report, TaskEvent) and report.data.problem is not None
    )
    assert problem.message.startswith("the queue of publish (asya-flights-publish) refuses messages of clean: ")

    world.sqs.create_queue(QueueName="asya-flights-publish")
    Completion(world.services_of("x-completion"), TimedContext()).process(event)
    assert [body["id"] for body in world.bodies("publish")] == ["a"]


@pytest.mark.rule("5.10.ended")
def test_no_frame_of_an_envelope_that_came_as_failed_keeps_its_error(world: HeavyWorld) -> None:
    error = {"type": "ValueError", "message": "no rows"}
    world.send("late", {"n": 2}, status={"phase": "failed", "reason": "RuntimeError", "error": error})
    world.enqueue()
    world.dispatch()
    world.write_results(2, [done_result(0)])
    world.set_state("run2", "SUCCESS")
    world.complete()
    (ended,) = world.bodies("x-sink")
    assert (ended["id"], ended["status"]["phase"], ended["status"]["reason"]) == ("late", "failed", "RuntimeError")
    assert ended["status"]["error"]["message"] == "no rows"
