"""A busy EMR Serverless is waited for: runs grow meanwhile, and no message pays for it (`protocol §10`)."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.spark.aws.dispatch_requests import DispatchRequest, DispatchRequests
from asya.spark.aws.pending import Pending
from asya.spark.lambdas.dispatch import Dispatcher
from asya.spark.lambdas.enqueue import Enqueuer
from tests.doubles.heavy import TABLE, World, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with heavy_world(monkeypatch) as made:
        yield made


def pending_of(world: World, *ids: str, actor: str = "clean") -> None:
    """Have these envelopes wait."""
    for envelope_id in ids:
        world.send(envelope_id)
    world.enqueue(actor)


def waiting_requests(world: World) -> dict[str, str]:
    """How many dispatch requests are due, and how many are delayed."""
    url = world.services.settings.queue_url("x-dispatch")
    found = world.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return {
        "due": found["ApproximateNumberOfMessages"],
        "delayed": found["ApproximateNumberOfMessagesDelayed"],
    }


# --- admission


def test_a_batch_is_admitted_whole_whatever_came_before_and_whatever_comes_twice(world: World) -> None:
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
def test_a_burst_costs_few_calls(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    put = Pending._put
    monkeypatch.setattr(Pending, "_put", lambda *given: (calls.append(len(given[2])), put(*given))[1])
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
def test_only_what_the_table_does_not_take_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
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


# --- runs that grow


@pytest.mark.rule("10.grow")
@pytest.mark.parametrize("state", ["SUBMITTED", "PENDING", "QUEUED"])
def test_a_run_that_is_not_full_waits_while_the_one_before_has_no_room(world: World, state: str) -> None:
    pending_of(world, "a")
    world.dispatch()
    world.tell("run1", state, event=False)

    for envelope_id in "bc":
        pending_of(world, envelope_id)
        world.dispatch()
    assert len(world.emr.runs) == 1
    assert waiting_requests(world) == {"due": "0", "delayed": "1"}

    world.tell("run1", "SCHEDULED")
    world.complete()
    assert world.dispatch() == 1
    assert [member.id for member in world.manifest(2).members] == ["b", "c"]


def test_a_full_run_queues_at_once(world: World) -> None:
    pending_of(world, "a")
    world.dispatch()
    world.tell("run1", "QUEUED", event=False)

    pending_of(world, "b", "c", "d")
    world.dispatch()

    assert len(world.emr.runs) == 2


def test_not_knowing_whether_there_is_room_is_no_reason_to_wait(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pending_of(world, "a")
    world.dispatch()
    pending_of(world, "b")

    def throttled(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "busy"}}, "GetJobRun")

    monkeypatch.setattr(world.emr, "get_job_run", throttled)
    world.dispatch()

    assert len(world.emr.runs) == 2


# --- throttled again and again


@pytest.mark.rule("10.busy.no-receive")
def test_while_emr_throttles_there_is_always_one_request_and_the_run_starts_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[DispatchRequest, int]] = []
    monkeypatch.setattr(DispatchRequests, "_send", lambda _self, *request_and_delay: sent.append(request_and_delay))
    world.emr.refusals = ["ThrottlingException", "ServiceQuotaExceededException"] * 5
    pending_of(world, "a", "b")
    dispatcher = Dispatcher(world.services_of("x-dispatch"))
    looks = 0
    while not world.emr.runs:
        looks += 1
        assert len(sent) == looks  # each look that comes to nothing asks for one other
        dispatcher.dispatch(sent[-1][0], TABLE.actors["clean"])
        assert looks < 30
    assert looks == 11
    assert all(1 <= seconds <= 25 for _, seconds in sent[1:])
    assert [run["name"][-1] for run in world.emr.runs.values()] == ["1"]
    assert [member.id for member in world.manifest(1).members] == ["a", "b"]


@pytest.mark.rule("10.grow")
def test_what_comes_meanwhile_is_in_the_next_run_together(world: World) -> None:
    pending_of(world, "a")
    world.emr.refusals = ["ThrottlingException"] * 2
    for envelope_id in ("b", "c"):
        world.dispatch()
        world.services.requests.clear("clean")
        pending_of(world, envelope_id)
    while world.dispatch():
        pass

    assert [[member.id for member in world.manifest(number).members] for number in (1, 2)] == [["a"], ["b", "c"]]


def test_a_request_is_taken_for_lost_only_after_its_delay(world: World) -> None:
    moment = datetime.now(UTC)
    world.services.requests.ensure("clean", 900, now=moment)
    assert world.services.requests.is_requested("clean", now=moment + timedelta(seconds=950))


@pytest.mark.rule("10.busy.no-room")
def test_a_run_that_there_was_no_room_for_is_no_death_and_charges_nobody(world: World) -> None:
    pending_of(world, "a", "b")
    world.dispatch()
    world.tell(
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
