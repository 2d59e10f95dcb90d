"""Runs wait for a busy EMR Serverless and take more envelopes meanwhile (`protocol §10`)."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from asya.protocol.mesh_table import SparkApplication
from asya.spark.aws.dispatch_requests import DispatchRequest, DispatchRequests
from asya.spark.aws.pending import Pending
from asya.spark.lambdas.dispatch import Dispatcher
from asya.spark.lambdas.enqueue import Enqueuer
from tests.doubles.heavy import BUCKET, TABLE, HeavyWorld, done_result, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


def enqueue_ids(world: HeavyWorld, *ids: str, actor: str = "clean") -> None:
    """Makes these envelopes pending."""
    for envelope_id in ids:
        world.send(envelope_id)
    world.enqueue(actor)


def waiting_requests(world: HeavyWorld) -> dict[str, str]:
    """The numbers of due and of delayed dispatch requests."""
    url = world.services.settings.queue_url("x-dispatch")
    attributes = world.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return {
        "due": attributes["ApproximateNumberOfMessages"],
        "delayed": attributes["ApproximateNumberOfMessagesDelayed"],
    }


# --- becoming pending


def test_a_batch_becomes_pending_despite_redeliveries_and_duplicates(world: HeavyWorld) -> None:
    world.send("a")
    first = world.enqueue()["Records"]
    for envelope_id in ("b", "c", "b"):
        world.send(envelope_id)
    more = world.receive("clean")["Records"]
    again = [{**record, "messageId": f"again-{record['messageId']}"} for record in first]

    answer = Enqueuer(world.services_of("clean")).process({"Records": [*again, *more]})

    assert answer == {"batchItemFailures": []}
    assert sorted(member.id for member in world.services.pending.members("clean")) == ["a", "b", "c"]


@pytest.mark.rule("10.admit.batch")
def test_a_burst_costs_few_calls(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    put = Pending._put
    monkeypatch.setattr(Pending, "_put", lambda *args: (calls.append(len(args[2])), put(*args))[1])
    for number in range(10):
        world.send(f"e{number}")
    records = [record for _ in range(12) for record in world.receive("clean")["Records"]]
    copies = [_as(record, f"e{number}") for number, record in enumerate(records * 11)]

    assert Enqueuer(world.services_of("clean")).process({"Records": copies}) == {"batchItemFailures": []}

    assert calls == [50, 50, 10]
    assert len(world.items("PENDING#clean")) == 110


def _as(record: dict[str, Any], envelope_id: str) -> dict[str, Any]:
    body = json.loads(record["body"]) | {"id": envelope_id}
    return {**record, "messageId": envelope_id, "body": json.dumps(body)}


@pytest.mark.rule("10.admit.batch")
def test_only_messages_that_the_table_rejects_are_kept(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    put = Pending._put

    def refuse_b(self: Pending, actor: str, members: Any, now: datetime) -> bool:
        if any(member.id == "b" for member in members):
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "busy"}}, "TransactWriteItems")
        return put(self, actor, members, now)

    monkeypatch.setattr(Pending, "_put", refuse_b)
    for envelope_id in "abc":
        world.send(envelope_id)
    event = world.receive("clean")
    message_ids = {json.loads(record["body"])["id"]: record["messageId"] for record in event["Records"]}

    answer = Enqueuer(world.services_of("clean")).process(event)

    assert answer == {"batchItemFailures": [{"itemIdentifier": message_ids["b"]}]}
    assert sorted(member.id for member in world.services.pending.members("clean")) == ["a", "c"]
    assert waiting_requests(world)["due"] == "1"


# --- waiting for capacity


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


# --- repeated throttling


@pytest.mark.rule("10.busy.no-receive")
def test_while_emr_throttles_there_is_always_one_request_and_the_run_starts_once(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[DispatchRequest, int]] = []
    monkeypatch.setattr(DispatchRequests, "_send", lambda _self, *request_and_delay: sent.append(request_and_delay))
    world.emr.refusals = ["ThrottlingException", "ServiceQuotaExceededException"] * 5
    enqueue_ids(world, "a", "b")
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


# --- an application of others


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    """A mesh on an application that exists, with two active runs at most."""
    spark = SparkApplication(start_per_second=100.0, start_burst=100, max_concurrent_runs=2)
    with heavy_world(monkeypatch, replace(TABLE, spark=spark)) as heavy:
        yield heavy


def dispatch_now(world: HeavyWorld, actor: str) -> None:
    """Runs the dispatcher for an actor, as after the delay of its request."""
    world.services.requests.clear(actor)
    world.services.requests.ensure(actor, 0, now=datetime.now(UTC))
    while world.dispatch():
        pass


def fill(world: HeavyWorld) -> None:
    """Starts a run of each actor, and makes an envelope of the first one pending."""
    for actor in ("clean", "stats"):
        world.send(f"first-{actor}", actor=actor)
        world.enqueue(actor)
        dispatch_now(world, actor)
    enqueue_ids(world, "next")
    dispatch_now(world, "clean")


def names_of(world: HeavyWorld) -> list[str]:
    return [run["name"] for run in world.emr.runs.values()]


FIRST = ["asya.flights.clean.0000000001", "asya.flights.stats.0000000001"]


@pytest.mark.rule("10.busy.slots")
def test_no_run_starts_beyond_the_slots(shared: HeavyWorld) -> None:
    fill(shared)

    assert names_of(shared) == FIRST
    assert shared.emr.calls == 2
    assert waiting_requests(shared) == {"due": "0", "delayed": "1"}
    dispatch_now(shared, "clean")
    assert names_of(shared) == FIRST
    assert shared.bodies("clean") == []
    assert shared.bodies("x-sink") == []


@pytest.mark.rule("10.busy.slots")
def test_the_end_of_a_run_frees_its_slot(shared: HeavyWorld) -> None:
    fill(shared)
    shared.write_results(1, [done_result(0, {})], actor="stats")
    shared.set_state("run2", "SUCCESS")
    shared.complete()

    assert shared.dispatch() == 1  # the close of the run sent a request for the actor that waits
    assert names_of(shared) == [*FIRST, "asya.flights.clean.0000000002"]
    assert [member.attempt for member in shared.manifest(2).members] == [1]


@pytest.mark.rule("10.busy.slots")
def test_a_dispatcher_that_died_after_taking_a_slot_starts_the_run_with_it(
    shared: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue_ids(shared, "a")
    with monkeypatch.context() as patch:
        patch.setattr(Dispatcher, "_start", lambda *_: False)
        dispatch_now(shared, "clean")
    assert names_of(shared) == []
    shared.services.run_slots.take("asya.flights.stats.0000000009", is_active=lambda _: True)
    assert not shared.services.run_slots.take("asya.flights.stats.0000000010", is_active=lambda _: True)

    dispatch_now(shared, "clean")

    assert names_of(shared) == FIRST[:1]


def test_a_refused_run_holds_no_slot(shared: HeavyWorld) -> None:
    shared.emr.refusals = ["ValidationException", "ValidationException"]
    fill(shared)
    assert names_of(shared) == ["asya.flights.clean.0000000002"]


def test_a_run_of_a_removed_actor_that_never_started_holds_no_slot(shared: HeavyWorld) -> None:
    shared.emr.refusals = ["ThrottlingException"]
    enqueue_ids(shared, "a")
    shared.dispatch()
    assert names_of(shared) == []
    others = replace(shared.table, actors={"stats": shared.table.actors["stats"]})
    remaining = Dispatcher(HeavyWorld(others).services)

    assert Dispatcher(shared.services)._is_active(FIRST[0])
    assert not remaining._is_active(FIRST[0])
    assert not remaining._is_active("nightly")


@pytest.mark.rule("10.busy.slots")
@pytest.mark.parametrize("end", ["SUCCESS", "unknown"])
def test_a_run_of_a_removed_actor_holds_its_slot_until_it_ends(shared: HeavyWorld, end: str) -> None:
    """Nobody reconciles the runs of a removed actor, so a lost event must not keep the slot."""
    enqueue_ids(shared, "a")
    shared.dispatch()
    shared.table = replace(shared.table, actors={"stats": shared.table.actors["stats"]})
    dispatcher = Dispatcher(shared.services_of("x-dispatch"))
    assert dispatcher._is_active(FIRST[0])

    if end == "unknown":
        shared.emr.forgotten.add("run1")
    else:
        shared.set_state("run1", end, event=False)

    assert not dispatcher._is_active(FIRST[0])


def test_an_unknown_state_of_a_run_of_a_removed_actor_keeps_its_slot(
    shared: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue_ids(shared, "a")
    shared.dispatch()
    shared.table = replace(shared.table, actors={"stats": shared.table.actors["stats"]})

    def throttled(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "busy"}}, "GetJobRun")

    monkeypatch.setattr(shared.emr, "get_job_run", throttled)
    assert Dispatcher(shared.services_of("x-dispatch"))._is_active(FIRST[0])


def holders(world: HeavyWorld) -> list[str]:
    return [name for item in world.items("QUOTA#concurrent-runs") for name in item.get("holders", {}).get("SS", [])]


@pytest.mark.rule("10.busy.slots")
@pytest.mark.parametrize("code", ["AccessDeniedException", "ApplicationMaxCapacityExceededException"])
def test_a_run_that_cannot_start_holds_no_slot(shared: HeavyWorld, code: str) -> None:
    shared.emr.refusals = [code]
    enqueue_ids(shared, "a")
    Dispatcher(shared.services_of("x-dispatch")).process(shared.receive("x-dispatch"))
    assert (names_of(shared), holders(shared)) == ([], [])

    dispatch_now(shared, "clean")
    assert (names_of(shared), holders(shared)) == (FIRST[:1], FIRST[:1])


@pytest.mark.rule("10.busy.slots")
def test_a_run_that_emr_may_have_accepted_keeps_its_slot(shared: HeavyWorld) -> None:
    shared.emr.refusals = ["InternalServerException"]
    enqueue_ids(shared, "a")
    shared.dispatch()
    assert (names_of(shared), holders(shared)) == ([], FIRST[:1])


def test_a_run_without_its_manifest_holds_no_slot(shared: HeavyWorld) -> None:
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


def test_an_application_of_the_mesh_needs_no_slots(world: HeavyWorld) -> None:
    enqueue_ids(world, "a")
    world.dispatch()
    assert world.items("QUOTA#concurrent-runs") == []
