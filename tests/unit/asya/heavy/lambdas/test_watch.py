"""Reports of running and ended runs, and the cancellation of runs (`protocol §10`)."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from asya.heavy.aws.completion_messages import (
    CanceledTask,
    CancelRequests,
    WatchRequest,
    decode_cancel,
    decode_message,
    encode_cancel,
)
from asya.heavy.lambdas.complete import LAST_RECEIVE, Completion
from asya.protocol.events import PartialEvent, TaskEvent
from asya.protocol.job_runs import attempts_prefix
from asya.protocol.mesh_table import SparkJob
from tests.doubles.heavy import BUCKET, TABLE, HeavyWorld, TimedContext, done_result, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    # Delayed messages arrive at once, so the tests do not wait.
    monkeypatch.setattr("asya.heavy.aws.completion_messages.INTERVAL_SECONDS", 0)
    with heavy_world(monkeypatch) as heavy:
        yield heavy


def start_run(world: HeavyWorld, *ids: str, actor: str = "clean", **more: Any) -> None:
    """Starts a run of these envelopes and sets it to `RUNNING`."""
    for envelope_id in ids:
        world.send(envelope_id, {"n": envelope_id}, actor=actor, **more)
    world.enqueue(actor)
    world.dispatch()
    world.set_state("run1", "RUNNING")


def write_file(world: HeavyWorld, name: str, content: Any, attempt: str = "a1", actor: str = "clean") -> None:
    """Writes a heartbeat or partials file of a job."""
    lines = content if isinstance(content, list) else [content]
    body = "\n".join(json.dumps(line) for line in lines).encode()
    world.s3.put_object(Bucket=BUCKET, Key=f"{attempts_prefix(actor, 1)}{attempt}/{name}", Body=body)


def heartbeat(number: int, *at_work: int, read: int = 0) -> dict[str, Any]:
    stage = {"stage": 3, "name": "count at jobs.py:7", "tasks": 8, "done": 2, "rows_read": read, "rows_written": 0}
    return {"at": f"2026-01-01T00:00:0{number}Z", "beat": number, "at_work": at_work, "done": 1, "stages": [stage]}


def run_reports(world: HeavyWorld, envelope_id: str) -> list[TaskEvent]:
    """The reports of an envelope that carry a run."""
    events = [event for event in world.gateway.events if isinstance(event, TaskEvent) and event.id == envelope_id]
    return [event for event in events if event.data.run is not None]


@pytest.mark.rule("10.reports")
def test_10_processing_names_the_run_once_it_is_running(world: HeavyWorld) -> None:
    start_run(world, "a", "b")
    world.complete()

    (event,) = run_reports(world, "a")
    assert event.data.run is not None
    assert (event.status, event.data.run.run_id, event.data.run.job_run_id, event.data.run.envelopes) == (
        "processing", "asya.flights.clean.0000000001", "run1", 2,
    )  # fmt: skip


@pytest.mark.rule("10.progress")
def test_10_stages_and_rows_reach_the_task_at_work_while_the_run_is_open(world: HeavyWorld) -> None:
    start_run(world, "a", "b")
    world.complete()
    write_file(world, "heartbeat-1.json", heartbeat(1, 1, read=500))
    assert world.complete() == 1  # the first poll
    write_file(world, "heartbeat-0.json", heartbeat(2, 1, read=900))
    assert world.complete() == 1
    assert world.complete() == 1  # without a new heartbeat

    assert len(run_reports(world, "a")) == 1
    rows = [event.data.run.stages[0].rows_read for event in run_reports(world, "b")[1:] if event.data.run]
    assert rows == [500, 900]
    # All reports carry the start of the run.
    assert len({event.at for event in run_reports(world, "b")}) == 1

    world.write_results(1, [done_result(0, 1), done_result(1, 2)])
    world.set_state("run1", "SUCCESS")
    while world.complete():
        pass  # polling ends with the run


def test_10_repeated_events_start_one_watch(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.set_state("run1", "RUNNING")
    assert world.complete() == 2
    world.complete()
    assert world.complete() == 1


def test_10_the_reconciler_finds_a_running_run_without_an_event(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.send("a")
    world.enqueue()
    world.dispatch()
    world.set_state("run1", "RUNNING", event=False)
    monkeypatch.setattr("asya.heavy.lambdas.reconcile.MIN_AGE", timedelta(0))
    world.emr.runs["run1"]["updatedAt"] = datetime.now(UTC) + timedelta(minutes=1)
    world.reconcile()
    assert world.complete() == 0  # its event may still arrive
    world.emr.runs["run1"]["updatedAt"] = datetime.now(UTC) - timedelta(minutes=1)
    world.reconcile()
    world.complete()
    assert len(run_reports(world, "a")) == 1
    world.receive("x-completion")  # the first watch request
    world.reconcile()
    assert world.complete() == 0


@pytest.mark.rule("10.progress")
def test_10_the_many_envelopes_of_a_dataframe_get_reports_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asya.heavy.aws.completion_messages.INTERVAL_SECONDS", 0)
    monkeypatch.setattr("asya.heavy.lambdas.watch.REPORT_LIMIT", 2)
    stats = replace(TABLE.actors["stats"], spark=SparkJob(job="flights.stats", shape="dataframe"))
    with heavy_world(monkeypatch, replace(TABLE, actors={**TABLE.actors, "stats": stats})) as world:
        start_run(world, "a", "b", "c", actor="stats")
        world.complete()
        for number in range(1, 4):
            write_file(world, f"heartbeat-{number % 2}.json", heartbeat(number), actor="stats")
            world.complete()
        assert [len(run_reports(world, name)) for name in "abc"] == [3, 3, 2]

        write_file(
            world, "fly-000000.jsonl", {"index": None, "sequence": 0, "at": "t", "data": {"x": 1}}, actor="stats"
        )
        world.complete()
        assert [event.id for event in world.gateway.events if isinstance(event, PartialEvent)] == ["a", "b"]


@pytest.mark.rule("10.fly")
def test_7_partials_of_a_job_are_passed_on_once_and_in_order(world: HeavyWorld) -> None:
    start_run(world, "a", "b")
    world.complete()
    lines = [{"index": 1, "sequence": n, "at": "2026-01-01T00:00:00Z", "data": {"n": n}} for n in range(3)]
    write_file(world, "fly-000000.jsonl", lines[:2])
    world.complete()
    write_file(world, "fly-000001.jsonl", lines[2:])
    world.complete()
    world.complete()

    partials = [event for event in world.gateway.events if isinstance(event, PartialEvent)]
    assert [(fly.id, fly.sequence, bytes(fly.data)) for fly in partials] == [
        ("b", 0, b'{"n": 0}'), ("b", 1, b'{"n": 1}'), ("b", 2, b'{"n": 2}'),
    ]  # fmt: skip
    assert {(fly.actor, fly.attempt, fly.receive) for fly in partials} == {("clean", 1, 1)}


def test_7_the_last_partials_are_passed_on_after_the_run(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.complete()
    write_file(world, "fly-000000.jsonl", {"index": 0, "sequence": 0, "at": "2026-01-01T00:00:00Z", "data": {}})
    world.write_results(1, [done_result(0, 1)])
    world.services.records.close("clean", 1)
    assert world.complete() == 1
    assert world.complete() == 0
    assert [event.id for event in world.gateway.events if isinstance(event, PartialEvent)] == ["a"]


def test_10_a_malformed_heartbeat_or_partial_fails_no_message(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.complete()
    write_file(world, "heartbeat-1.json", {"beat": "no number"})
    write_file(world, "fly-000000.jsonl", {"no": "message"})
    assert world.complete() == 1
    assert world.complete() == 1


@pytest.mark.rule("10.usage")
def test_10_the_usage_is_recorded_and_reported_with_the_end(world: HeavyWorld) -> None:
    start_run(world, "a", "b")
    world.complete()
    world.write_results(1, [done_result(0, 1), done_result(1, 2)])
    world.emr.runs["run1"]["billedResourceUtilization"] = {"vCPUHour": 0.25, "memoryGBHour": 1.0, "storageGBHour": 0.0}
    world.set_state("run1", "SUCCESS", details="fine")
    while world.complete():
        pass

    record = world.services.records.get("clean", 1)
    assert record is not None
    assert record.usage is not None
    assert (record.job_state, record.usage.vcpu_hours, record.usage.billed) == ("SUCCESS", 0.25, True)
    last = run_reports(world, "b")[-1]
    assert (last.status, last.data.run and last.data.run.usage) == ("completed", record.usage)


@pytest.mark.rule("10.states")
def test_10_every_state_is_recorded_and_never_goes_back(world: HeavyWorld) -> None:
    world.send("a")
    world.enqueue()
    world.dispatch()
    states = []
    for state in ("QUEUED", "PENDING", "SCHEDULED", "SUBMITTED", "RUNNING", "SCHEDULED", "CANCELLING", "A_NEW_ONE"):
        world.set_state("run1", state)
        world.complete()
        record = world.services.records.get("clean", 1)
        assert record is not None
        states.append(record.job_state)
    assert states == ["QUEUED", "PENDING", "SCHEDULED", "SCHEDULED", "RUNNING", "RUNNING", "CANCELLING", "CANCELLING"]


@pytest.mark.rule("10.cancel")
def test_10_a_run_is_canceled_when_all_its_members_are(world: HeavyWorld) -> None:
    start_run(world, "a", "b")
    world.complete()
    world.gateway.canceled = {"a"}
    world.put("x-completion", encode_cancel("a"))
    world.complete()
    assert world.emr.canceled == []

    world.gateway.canceled = {"a", "b"}
    CancelRequests(world.sqs, queue_url=world.services.settings.queue_url("x-completion")).send("b")
    world.complete()
    assert world.emr.canceled == ["run1"]

    world.set_state("run1", "CANCELLED")
    while world.complete():
        pass
    ended = world.bodies("x-sink")
    assert [(body["id"], body["status"]["phase"]) for body in ended] == [("a", "canceled"), ("b", "canceled")]


@pytest.mark.rule("10.cancel")
def test_10_canceling_a_root_reaches_the_runs_of_its_children(world: HeavyWorld) -> None:
    start_run(world, "a", headers={"x-asya-root": "root"})
    world.complete()
    world.gateway.canceled = {"a"}
    world.put("x-completion", encode_cancel("somebody else"))
    world.complete()
    assert world.emr.canceled == []
    world.put("x-completion", encode_cancel("root"))
    world.complete()
    assert world.emr.canceled == ["run1"]


@pytest.mark.rule("10.cancel")
def test_10_a_run_of_canceled_tasks_is_canceled_when_it_starts(world: HeavyWorld) -> None:
    world.send("a")
    world.enqueue()
    world.dispatch()
    world.gateway.canceled = {"a"}
    world.set_state("run1", "RUNNING")
    world.complete()
    assert world.emr.canceled == ["run1"]


def stranger_says(world: HeavyWorld, event: dict[str, Any], receives: int = 1) -> int:
    """Processes an event of a sender outside, which EventBridge is too; returns the number of kept messages."""
    for record in event["Records"]:
        record["attributes"] |= {"SenderId": "AIDAEVENTS", "ApproximateReceiveCount": str(receives)}
    return len(Completion(world.services_of("x-completion"), TimedContext()).process(event)["batchItemFailures"])


@pytest.mark.rule("10.event-of-a-run")
def test_10_a_state_counts_once_emr_serverless_gives_it(world: HeavyWorld) -> None:
    world.send("a")
    world.enqueue()
    world.dispatch()
    world.set_state("run1", "RUNNING")
    event = world.receive("x-completion")
    world.emr.runs["run1"]["state"] = "SCHEDULED"
    assert [stranger_says(world, event, receives) for receives in (1, LAST_RECEIVE)] == [1, 0]
    assert "processing" not in [event.status for event in world.gateway.events if isinstance(event, TaskEvent)]
    world.emr.runs["run1"]["state"] = "RUNNING"
    assert stranger_says(world, event) == 0
    assert "processing" in [event.status for event in world.gateway.events if isinstance(event, TaskEvent)]


@pytest.mark.rule("4.entry.ends")
def test_10_requests_of_strangers_are_dropped(world: HeavyWorld) -> None:
    start_run(world, "a")
    while world.receive("x-completion")["Records"]:
        pass
    world.gateway.canceled = {"a"}
    watch = {
        "detail-type": "asya.watch-run",
        "detail": {"run_id": "asya.flights.clean.0000000001", "job_run_id": "run1", "turn": 9},
    }
    for body in (encode_cancel("a"), json.dumps(watch), "[" * 100_000):
        world.put("x-completion", body)
        assert stranger_says(world, world.receive("x-completion")) == 0
    assert world.emr.canceled == []
    assert world.receive("x-completion")["Records"] == []


def test_10_unknown_task_states_cancel_no_run_and_make_no_dead_letter(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_run(world, "a")
    world.complete()
    world.put("x-completion", encode_cancel("a"))
    event = world.receive("x-completion")
    while not any("task-canceled" in record["body"] for record in event["Records"]):
        event = world.receive("x-completion")
    event["Records"] = [record for record in event["Records"] if "task-canceled" in record["body"]]
    monkeypatch.setattr(world.gateway, "ask", lambda *_: {})
    for receives, kept in ((1, 1), (4, 0)):
        event["Records"][0]["attributes"]["ApproximateReceiveCount"] = str(receives)
        answer = Completion(world.services_of("x-completion"), TimedContext()).process(event)
        assert len(answer["batchItemFailures"]) == kept
    assert world.emr.canceled == []


def test_10_messages_of_the_completions_queue() -> None:
    assert decode_message(encode_cancel("t").encode()) == CanceledTask("t")
    assert decode_message(b'{"detail-type": "asya.task-canceled", "detail": {"taskId": 3}}') is None
    assert decode_cancel({"detail-type": "another"}) is None
    watch = {"detail-type": "asya.watch-run", "detail": {"run_id": "r", "job_run_id": "j"}}
    assert decode_message(json.dumps(watch).encode()) == WatchRequest("r", "j")
    with pytest.raises(ValueError, match="malformed watch request"):
        decode_message(b'{"detail-type": "asya.watch-run", "detail": {"else": 1}}')
    with pytest.raises(ValueError, match="JSON object"):
        decode_message(b"[]")
