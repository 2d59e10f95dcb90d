"""The dispatcher forms the runs of pending envelopes and starts each once (`protocol §10`)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from asya.protocol.times import format_time
from tests.doubles.dispatching import start_run
from tests.doubles.heavy import HeavyWorld, done_result, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


def test_one_request_stands_for_many_envelopes_and_a_run_takes_no_more_than_its_size(world: HeavyWorld) -> None:
    for name in "abcdefg":
        world.send(name)
        world.enqueue()

    assert world.dispatch() == 1
    assert world.dispatch() == 1  # more envelopes than one run takes
    assert world.dispatch() == 1
    assert world.dispatch() == 0
    assert [len(world.manifest(number).members) for number in (1, 2, 3)] == [3, 3, 1]


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
