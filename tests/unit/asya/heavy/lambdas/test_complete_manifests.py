"""The completion routes nothing by a manifest that does not fit its run, and nothing is lost (`protocol §10`)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from asya.function.lambdas.batch import BatchResponse
from asya.heavy.lambdas.complete import Completion
from asya.protocol.job_runs import manifest_key
from tests.doubles.heavy import BUCKET, HeavyWorld, TimedContext, done_result, heavy_world

KEY = manifest_key("clean", 1)
OTHERS = "payloads/ab/secret.json"
ENVELOPE = {"id": "victim", "route": {"prev": [], "curr": "clean", "next": ["publish"]}, "payload": {"n": 0}}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        heavy.send("a", {"n": 1})
        heavy.enqueue()
        heavy.dispatch()
        heavy.s3.put_object(Bucket=BUCKET, Key=OTHERS, Body=json.dumps(ENVELOPE).encode())
        heavy.write_results(1, [done_result(0, {"n": 2})])
        yield heavy


def stored(world: HeavyWorld) -> bytes:
    return world.s3.get_object(Bucket=BUCKET, Key=KEY)["Body"].read()


def forge(world: HeavyWorld, **changes: Any) -> None:
    """Changes the manifest as its only member says, or with `run` the manifest itself."""
    head, member = map(json.loads, stored(world).splitlines())
    head |= changes.pop("run", {})
    member = {name: value for name, value in (member | changes).items() if value is not None}
    world.s3.put_object(Bucket=BUCKET, Key=KEY, Body=f"{json.dumps(head)}\n{json.dumps(member)}\n".encode())


def complete(world: HeavyWorld) -> BatchResponse:
    event = world.receive("x-completion")
    return Completion(world.services_of("x-completion"), TimedContext()).process(event)


FORGERIES: list[dict[str, Any]] = [
    {"id": "victim", "envelope": ENVELOPE},
    {"envelope": None, "envelope_key": OTHERS},
    {"envelope": None, "envelope_key": "pending/clean/../../" + OTHERS},
    {"envelope": None, "envelope_key": "pending/stats/x.json"},
    {"run": {"actor": "stats"}},
    {"run": {"number": 2}},
]


@pytest.mark.rule("10.manifest")
@pytest.mark.parametrize("forgery", FORGERIES)
def test_10_a_changed_manifest_routes_nothing_until_it_is_mended(
    world: HeavyWorld, forgery: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    original = stored(world)
    forge(world, **forgery)
    world.set_state("run1", "SUCCESS")
    assert len(complete(world)["batchItemFailures"]) == 1
    assert f"s3://{BUCKET}/{KEY} was changed after the run was formed" in caplog.text
    assert [world.bodies(queue) for queue in ("publish", "x-sink", "x-sump", "clean")] == [[], [], [], []]

    world.s3.put_object(Bucket=BUCKET, Key=KEY, Body=original)
    world.set_state("run1", "SUCCESS")  # the redriven message is another one: the lease must be free
    world.complete()
    assert [body["id"] for body in world.bodies("publish")] == ["a"]


@pytest.mark.rule("10.manifest")
def test_10_a_changed_manifest_gets_no_partials_and_leaves_other_runs_alone(world: HeavyWorld) -> None:
    """Neither the watch nor the reconciler nor a cancellation trusts it, and the other runs of the mesh go on."""
    forge(world, id="victim", report_url="https://gateway", envelope=ENVELOPE)
    world.send("b", {"n": 1}, actor="stats")
    world.enqueue("stats")
    world.dispatch()
    world.gateway.events.clear()
    world.set_state("run1", "RUNNING")
    assert complete(world) == {"batchItemFailures": []}
    assert "victim" not in {event.id for event in world.gateway.events}

    world.gateway.canceled |= {"b", "victim"}
    world.receive("x-completion")  # the watch
    world.put("x-completion", json.dumps({"detail-type": "asya.task-canceled", "detail": {"taskId": "b"}}))
    assert complete(world) == {"batchItemFailures": []}
    assert world.emr.canceled == ["run2"]


@pytest.mark.rule("10.manifest")
def test_10_the_reconciler_goes_on_behind_a_changed_manifest(world: HeavyWorld) -> None:
    forge(world, id="victim", envelope=ENVELOPE)
    world.send("b", {"n": 1}, actor="stats")
    world.enqueue("stats")
    world.dispatch()
    for run in ("run1", "run2"):
        world.set_state(run, "FAILED", event=False)
    for record in world.items("RUN#"):
        if "formed_at" in record:
            world.dynamodb.update_item(
                TableName="asya-flights-pending",
                Key={"pk": record["pk"], "sk": record["sk"]},
                UpdateExpression="SET formed_at = :past",
                ExpressionAttributeValues={":past": {"S": "2020-01-01T00:00:00.000000Z"}},
            )
    world.reconcile()
    events = [json.loads(record["body"]) for record in world.receive("x-completion")["Records"]]
    assert {event["detail"]["jobRunName"] for event in events} == {"asya.flights.stats.0000000001"}
