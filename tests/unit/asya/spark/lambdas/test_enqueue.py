"""The heavy path from queue to queue, on moto (`protocol §10`)."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from asya.protocol.events import TaskEvent
from asya.protocol.times import format_time
from asya.spark.lambdas import result_routing
from asya.spark.lambdas.enqueue import Enqueuer
from tests.doubles.heavy import BUCKET, TABLE, HeavyWorld, TimedContext, done_result, failed_result, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


def start_run(world: HeavyWorld, *ids: str) -> None:
    """Starts a run of these envelopes."""
    for envelope_id in ids:
        world.send(envelope_id, {"n": envelope_id})
    world.enqueue()
    world.dispatch()


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


def test_one_request_stands_for_many_envelopes_and_a_run_takes_no_more_than_its_size(world: HeavyWorld) -> None:
    for name in "abcdefg":
        world.send(name)
        world.enqueue()

    assert world.dispatch() == 1
    assert world.dispatch() == 1  # more envelopes than one run takes
    assert world.dispatch() == 1
    assert world.dispatch() == 0
    assert [len(world.manifest(number).members) for number in (1, 2, 3)] == [3, 3, 1]


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


@pytest.mark.rule("10.run.once")
def test_a_manifest_without_a_run_is_finished_before_another_is_formed(world: HeavyWorld) -> None:
    start_run(world, "a")
    first = world.manifest(1)
    # Another dispatcher failed after it wrote the manifest of run 2.
    world.send("b")
    world.enqueue()
    waiting = tuple(world.services.pending.members("clean"))
    token = "t" * 64
    world.services.manifests.create(
        replace(first, number=2, run_id="asya.flights.clean.0000000002", members=waiting, client_token=token)
    )
    world.send("c")
    world.enqueue()

    while world.dispatch():
        pass

    assert [run["name"][-1] for run in world.emr.runs.values()] == ["1", "2", "3"]
    assert token in world.emr.by_token
    assert [member.id for member in world.manifest(3).members] == ["c"]


@pytest.mark.rule("10.run.once")
def test_a_lost_answer_of_emr_starts_nothing_twice(world: HeavyWorld) -> None:
    start_run(world, "a")
    key = {"pk": {"S": "RUN#clean"}, "sk": {"S": f"{1:010d}"}}
    world.dynamodb.update_item(
        TableName="asya-flights-pending",
        Key=key,
        UpdateExpression="SET #state = :formed REMOVE job_run_id",
        ExpressionAttributeNames={"#state": "state"},
        ExpressionAttributeValues={":formed": {"S": "formed"}},
    )
    world.services.requests.ensure("clean", 0, now=datetime.now(UTC))

    world.dispatch()

    assert (world.emr.calls, len(world.emr.runs)) == (2, 1)
    record = world.services.records.get("clean", 1)
    assert record is not None
    assert (record.state, record.job_run_id) == ("started", "run1")


@pytest.mark.rule("10.busy")
@pytest.mark.parametrize("code", ["ThrottlingException", "ServiceQuotaExceededException", "InternalServerException"])
def test_a_busy_emr_delays_the_run(world: HeavyWorld, code: str) -> None:
    world.emr.refusals = [code]
    start_run(world, "a")

    assert world.emr.runs == {}
    assert world.services.requests.is_requested("clean", now=datetime.now(UTC))
    attributes = world.sqs.get_queue_attributes(
        QueueUrl=world.services.settings.queue_url("x-dispatch"), AttributeNames=["All"]
    )["Attributes"]
    assert attributes["ApproximateNumberOfMessagesDelayed"] == "1"

    world.services.requests.clear("clean")
    world.services.requests.ensure("clean", 0, now=datetime.now(UTC))
    world.dispatch()
    assert [run["name"][-1] for run in world.emr.runs.values()] == ["1"]


@pytest.mark.rule("10.busy")
def test_the_quota_is_kept_without_asking_emr(world: HeavyWorld) -> None:
    for _ in range(25):
        assert world.services.start_rate.take(now=datetime.now(UTC)) == 0

    start_run(world, "a")

    assert world.emr.calls == 0
    assert world.services.requests.is_requested("clean", now=datetime.now(UTC))


def test_a_run_that_emr_refuses_fails_its_envelopes_with_the_reason(world: HeavyWorld) -> None:
    world.emr.refusals = ["ValidationException"]
    start_run(world, "a")

    world.complete()

    (retry,) = world.bodies("clean")
    assert retry["status"]["error"]["type"] == "SparkJobFailed"
    assert "ValidationException: as requested" in retry["status"]["error"]["message"]


def test_a_conflict_adopts_the_run_of_that_name(world: HeavyWorld) -> None:
    world.emr.runs["elsewhere"] = {"name": "asya.flights.clean.0000000001", "state": "RUNNING", "stateDetails": ""}
    world.emr.refusals = ["ConflictException"]

    start_run(world, "a")

    record = world.services.records.get("clean", 1)
    assert record is not None
    assert (record.state, record.job_run_id) == ("started", "elsewhere")


@pytest.mark.rule("10.checked.forming")
def test_the_canceled_and_the_late_are_left_out_of_the_run(world: HeavyWorld) -> None:
    world.send("a")
    world.send("late", status={"deadline_at": format_time(datetime.now(UTC) + timedelta(seconds=1.2))})
    world.send("canceled")
    world.enqueue()
    world.gateway.canceled = {"canceled"}
    end = datetime.now(UTC) + timedelta(seconds=0.3)
    while datetime.now(UTC) < end:
        pass

    world.dispatch()

    assert [member.id for member in world.manifest(1).members] == ["a"]
    ended = {body["id"]: body["status"] for body in world.bodies("x-sink")}
    assert ended["canceled"]["phase"] == "canceled"
    assert (ended["late"]["phase"], ended["late"]["reason"]) == ("failed", "Timeout")
    assert world.items("PENDING#") == []


@pytest.mark.rule("10.one-commit")
def test_a_repeated_event_routes_nothing_twice(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.write_results(1, [done_result(0, 1, 2)])
    world.set_state("run1", "SUCCESS")
    world.set_state("run1", "SUCCESS")

    assert world.complete() == 2

    frames = world.bodies("publish")
    assert sorted(frame["payload"] for frame in frames) == [1, 2]
    assert {frame.get("parent_id") for frame in frames} == {None, "a"}


@pytest.mark.rule("10.one-commit")
def test_of_two_attempts_one_commit_counts(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.write_results(1, [done_result(0, "half")], attempt="a0", end=None)
    world.write_results(1, [done_result(0, "first")], attempt="a1")
    world.write_results(1, [done_result(0, "second")], attempt="a2")
    world.set_state("run1", "SUCCESS")
    world.complete()

    assert [body["payload"] for body in world.bodies("publish")] == ["first"]


@pytest.mark.rule("10.death.committed")
def test_results_of_a_failed_run_count_and_the_member_at_work_is_charged_with_the_details(world: HeavyWorld) -> None:
    start_run(world, "a", "b", "c")
    world.write_results(1, [done_result(0, 1), done_result(1, 2)], end="journal")
    world.set_state("run1", "FAILED", details="exit code 137")
    world.complete()

    assert [body["payload"] for body in world.bodies("publish")] == [1, 2]
    (retry,) = world.bodies("clean")
    assert (retry["id"], retry["status"]["phase"], retry["status"]["attempt"]) == ("c", "retrying", 2)
    assert retry["status"]["error"]["type"] == "SparkJobFailed"
    assert "exit code 137" in retry["status"]["error"]["message"]
    assert world.items("OPEN#") == []


@pytest.mark.rule("10.death.committed")
def test_incomplete_parts_of_a_failed_run_do_not_count(world: HeavyWorld) -> None:
    start_run(world, "a", "b", "c")
    world.write_results(1, [done_result(0, 1), done_result(1, 2), done_result(2, 3)], end="journal")
    world.s3.put_object(Bucket=BUCKET, Key="runs/clean/0000000001/attempts/a1/part-000001.jsonl", Body=b"{")
    world.set_state("run1", "FAILED")
    world.complete()

    assert [body["id"] for body in world.bodies("publish")] == ["a", "b"]
    assert [body["id"] for body in world.bodies("clean")] == ["c"]


def test_a_success_without_a_commit_is_a_failure(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.set_state("run1", "SUCCESS")
    world.complete()

    (retry,) = world.bodies("clean")
    assert retry["status"]["error"]["type"] == "SparkJobFailed"


def test_the_error_of_the_whole_job_fails_every_member(world: HeavyWorld) -> None:
    start_run(world, "a", "b")
    error = {"type": "asya.runtime.load.LoadError", "message": "no such job", "mro": [], "traceback": ""}
    world.write_results(1, [], error=error)
    world.set_state("run1", "SUCCESS")
    world.complete()

    assert [body["status"]["error"]["message"] for body in world.bodies("clean")] == ["no such job"] * 2


def test_without_a_policy_a_failed_run_ends_its_envelopes(monkeypatch: pytest.MonkeyPatch) -> None:
    with heavy_world(monkeypatch) as world:
        world.send("a", actor="stats")
        world.enqueue("stats")
        world.dispatch()
        world.set_state("run1", "CANCELLED")
        world.complete()

        (ended,) = world.bodies("x-sink")
        assert (ended["status"]["phase"], ended["status"]["reason"]) == ("failed", "SparkJobFailed")


def test_frames_before_an_error_leave_and_the_failure_is_a_child(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.write_results(1, [failed_result(0, "one", "two")])
    world.set_state("run1", "SUCCESS")
    world.complete()

    assert len(world.bodies("publish")) == 2
    (child,) = world.bodies("x-sink")
    assert (child["parent_id"], child["status"]["phase"]) == ("a", "failed")


def test_a_route_that_leads_nowhere_is_a_mismatch(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.write_results(1, [done_result(0, 1, next=["nobody"])])
    world.set_state("run1", "SUCCESS")
    world.complete()

    (sumped,) = world.bodies("x-sump")
    assert sumped["status"]["reason"] == "RouteMismatch"


@pytest.mark.rule("10.checked.completion")
def test_the_result_of_a_canceled_envelope_is_dropped(world: HeavyWorld) -> None:
    start_run(world, "a", "b")
    world.gateway.canceled = {"a"}
    world.write_results(1, [done_result(0, 1), done_result(1, 2)])
    world.set_state("run1", "SUCCESS")
    world.complete()

    assert [body["id"] for body in world.bodies("publish")] == ["b"]
    assert [body["status"]["phase"] for body in world.bodies("x-sink")] == ["canceled"]


@pytest.mark.rule("10.large")
def test_many_children_are_routed_in_chunks_over_several_invocations(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_routing, "CHUNK", 7)
    start_run(world, "a", "b", "c")
    world.write_results(1, [done_result(0, *range(20)), done_result(1, "b"), done_result(2, *range(100, 120))])
    world.set_state("run1", "SUCCESS")
    invocations = 0
    while world.complete(TimedContext(answers=1)):
        invocations += 1

    payloads = [body["payload"] for body in world.bodies("publish")]
    assert invocations > 3
    assert sorted(map(str, payloads)) == sorted(map(str, [*range(20), "b", *range(100, 120)]))
    assert world.reported_ids("completed") == ["a", "b", "c"]
    assert world.items("OPEN#") == []


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
    monkeypatch.setattr("asya.spark.lambdas.reconcile.MIN_AGE", timedelta(0))
    world.reconcile()
    assert world.complete() == 1
    assert [body["payload"] for body in world.bodies("publish")] == [1]

    world.reconcile()
    assert (world.dispatch(), world.complete()) == (0, 0)


def test_free_capacity_starts_the_next_run_at_once(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.emr.refusals = ["ServiceQuotaExceededException"]
    world.send("b")
    world.enqueue()
    world.dispatch()
    assert len(world.emr.runs) == 1

    world.write_results(1, [done_result(0, 1)])
    world.set_state("run1", "SUCCESS")
    world.complete()

    assert world.dispatch() == 1
    assert len(world.emr.runs) == 2


def test_an_id_at_two_places_of_its_route_runs_in_two_runs(world: HeavyWorld) -> None:
    world.send("a")
    world.send("a", route={"prev": ["publish"], "curr": "clean", "next": []})
    world.enqueue()

    assert world.dispatch() == 1
    assert world.dispatch() == 1
    assert [member.position for number in (1, 2) for member in world.manifest(number).members] in ([0, 1], [1, 0])


def test_the_mesh_of_these_tests_has_a_default_policy_for_one_of_them() -> None:
    assert TABLE.actors["clean"].resiliency.policies
    assert not TABLE.actors["stats"].resiliency.policies


@pytest.mark.rule("10.secrets")
def test_10_the_start_of_a_run_names_the_secrets_of_its_actor(world: HeavyWorld) -> None:
    clean = replace(world.table.actors["clean"], secrets={"SHOP_KEY": "shop/key"})
    world.table = replace(world.table, actors={**world.table.actors, "clean": clean})
    world.send("a", {"n": 1})
    world.enqueue()
    world.dispatch()
    request = world.emr.runs["run1"]["request"]
    arguments = request["jobDriver"]["sparkSubmit"]["entryPointArguments"]
    assert arguments[4:] == ["--secret", "SHOP_KEY=shop/key", "--region", "us-east-1"]


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
