"""protocol §11 when what the crew stands on gives way: S3, the tables, the gateway. IAM is enforced; nothing is lost.

Each story has an outage and, after its `yield`, what was to come of it. All outages are gone through before the first test looks:
what was kept comes again some seconds later, meanwhile there is the next outage.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from asya.protocol import names
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.paths_mesh import NewEnvelope, notes, send, wait_for_final_state
from tests.cloud.slice_sets import merged_payload, send_all, slice_messages

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.cloud

OUTAGE_SECONDS = 60.0 if os.environ.get("ASYA_FULL_SIZE") else 0.0
"""How long the gateway is down at least; in full size by `make test-full`."""


@contextmanager
def denied(cloud: DeployedCloud, function: str, *actions: str, resource: str = "*") -> Iterator[None]:
    """For a while a function may not do these things: to it, the service refuses."""
    iam, region = cloud.client("iam"), cloud.mesh.connection.region
    role = names.role_name(cloud.mesh.connection.namespace, function, region)
    statement = {"Effect": "Deny", "Action": list(actions), "Resource": resource}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_role_policy(RoleName=role, PolicyName="outage", PolicyDocument=document)
    try:
        yield
    finally:
        iam.delete_role_policy(RoleName=role, PolicyName="outage")


@contextmanager
def down(cloud: DeployedCloud, function: str) -> Iterator[None]:
    """For a while every call of a function fails."""
    functions = cloud.client("lambda")
    name = names.function_name(cloud.mesh.connection.namespace, function)
    handler = functions.get_function_configuration(FunctionName=name)["Handler"]
    functions.update_function_configuration(FunctionName=name, Handler="nothing.there")
    try:
        yield
    finally:
        functions.update_function_configuration(FunctionName=name, Handler=handler)


def waiting(cloud: DeployedCloud, actor: str) -> int:
    """Messages on an actor's queue, those included that come again later."""
    return cloud.message_count(names.queue_name(cloud.mesh.connection.namespace, actor))


def kept_for_want_of(cloud: DeployedCloud, actor: str, what: str, since: float) -> bool:
    """Whether an actor has logged since then that it keeps a message, because it may not do this."""
    return logged(cloud, actor, "message kept", what, since=since)


def logged(cloud: DeployedCloud, actor: str, *words: str, since: float) -> bool:
    """Whether an actor has logged a line with these words since then (seconds since the epoch)."""
    group = f"/aws/lambda/{names.function_name(cloud.mesh.connection.namespace, actor)}"
    pages = cloud.client("logs").get_paginator("filter_log_events")
    lines = (
        each["message"]
        for page in pages.paginate(logGroupName=group, startTime=int(since * 1000))
        for each in page["events"]
    )
    return any(all(word in line for word in words) for line in lines)


def written(cloud: DeployedCloud, envelope_id: str) -> bool:
    """Whether x-sink has written an envelope, whoever knows of it."""
    place = cloud.mesh.connection.results
    found = cloud.client("s3").list_objects_v2(Bucket=place.bucket, Prefix=f"{place.prefix}happy-asya/")
    return any(each["Key"].endswith(f"/{envelope_id}.json") for each in found.get("Contents", []))


def until_written(cloud: DeployedCloud, envelope_id: str) -> None:
    """Wait for x-sink to write an envelope."""
    until(lambda: written(cloud, envelope_id) or None, f"{envelope_id} to be written")


def known(envelope: NewEnvelope) -> NewEnvelope:
    """With a status, as the gateway would send it: no sidecar has to make it known first."""
    return NewEnvelope(envelope.route, envelope.payload, status={"phase": "pending"})


def s3_refuses_writes(cloud: DeployedCloud) -> Iterator[None]:
    """To x-sink, x-sump, x-checkpoint and a pause, all at once."""
    began = time.time()
    with ExitStack() as outage:
        for actor in (names.SINK, names.SUMP, names.CHECKPOINT, "approve"):
            outage.enter_context(denied(cloud, actor, "s3:PutObject"))
        task_id = send(cloud, NewEnvelope(["helper"], {"n": 1}))
        failing = send(cloud, NewEnvelope(["helper", "nobody"], {}))
        passing = send(cloud, NewEnvelope(["x-checkpoint", "once"], {"n": 4}))
        waits = send(cloud, NewEnvelope(["approve"], {}))
        task = cloud.wait_for_end(task_id)
        assert (task.status, task.result_uri) == ("succeeded", None)
        assert json.loads(bytes(task.result)) == {"n": 1, "steps": 1}  # type: ignore[arg-type]
        failed = cloud.wait_for_end(failing)
        assert (failed.status, failed.reason) == ("failed", "RouteMismatch")
        assert waiting(cloud, names.SINK) >= 1
        assert waiting(cloud, names.SUMP) >= 1
        for actor in (names.CHECKPOINT, "approve"):
            until(lambda actor=actor: kept_for_want_of(cloud, actor, "PutObject", began) or None, f"{actor} to keep it")  # type: ignore[misc]
        assert notes(cloud, passing) == []
        assert cloud.mesh.task(waits).pause is None  # type: ignore[union-attr]
    yield
    end = wait_for_final_state(cloud, task_id)
    assert end.payload == {"n": 1, "steps": 1}
    assert (end.task.status, end.task.updated_at) == ("succeeded", task.updated_at)
    stored = until(lambda: cloud.mesh.stored(failing), "the copy")
    assert f"/sump/{failing}.json" in stored.uri
    assert logged(cloud, names.SUMP, "envelope failed", failing, since=began)
    assert wait_for_final_state(cloud, passing).payload == {"n": 4}
    place = cloud.mesh.connection.results
    checkpoint = json.loads(cloud.mesh.fetch(f"{place.uri}checkpoint/{passing}/0.json") or b"")
    assert (checkpoint["id"], checkpoint["payload"]) == (passing, {"n": 4})
    paused = until(lambda: task if (task := cloud.task(waits)) and task.pause else None, "the task to pause")
    assert paused.status == "paused"
    cloud.mesh.cancel(waits)


def a_table_refuses_claims(cloud: DeployedCloud) -> Iterator[None]:
    """Of x-sink's, and a fan-in actor its slices."""
    began = time.time()
    with denied(cloud, names.SINK, "dynamodb:UpdateItem"), denied(cloud, "gather", "dynamodb:UpdateItem"):
        task_id, origin = send(cloud, NewEnvelope(["once"], {"n": 2})), str(uuid4())
        send_all(cloud, "gather", slice_messages(origin, 3, at="gather"))
        until(lambda: notes(cloud, task_id) or None, "the handler to be called")
        until(lambda: kept_for_want_of(cloud, names.SINK, "UpdateItem", began) or None, "x-sink to keep the message")
        until(lambda: kept_for_want_of(cloud, "gather", "UpdateItem", began) or None, "the slices to be kept")
        assert not written(cloud, task_id)
        assert notes(cloud, origin) == []
    yield
    assert wait_for_final_state(cloud, task_id).payload == {"n": 2}
    assert wait_for_final_state(cloud, origin).payload == merged_payload(3)
    assert [len(notes(cloud, once)) for once in (task_id, origin)] == [1, 1]


def a_table_takes_no_records(cloud: DeployedCloud) -> Iterator[None]:
    """Of the status endpoint's."""
    refused = ("dynamodb:PutItem", "dynamodb:BatchWriteItem", "dynamodb:UpdateItem")
    with denied(cloud, names.GATEWAY_INGEST, *refused):
        task_id = send(cloud, known(NewEnvelope(["once"], {"n": 3})))
        until_written(cloud, task_id)
        assert cloud.mesh.task(task_id) is None
        assert waiting(cloud, names.SINK) >= 1
    yield
    end = wait_for_final_state(cloud, task_id)
    assert (end.task.status, end.payload) == ("succeeded", {"n": 3})
    assert len(notes(cloud, task_id)) == 1


def the_gateway_is_down(cloud: DeployedCloud) -> Iterator[None]:
    """For whoever reports."""
    began = time.time()
    with down(cloud, names.GATEWAY_INGEST):
        # At another actor: whoever were in its batch would wait with it.
        unknown = send(cloud, NewEnvelope(["stubborn"], {"until": 1}))
        tracked = [send(cloud, known(NewEnvelope(["once"], {"n": number}))) for number in range(3)]
        failing = send(cloud, known(NewEnvelope(["helper", "nobody"], {})))
        for task_id in tracked:
            until_written(cloud, task_id)
        assert [cloud.mesh.task(task_id) for task_id in (*tracked, unknown, failing)] == [None] * 5
        until(lambda: time.time() > began + OUTAGE_SECONDS or None, "the outage to last long enough")
        # What nobody has been told of waits before its first handler.
        assert (notes(cloud, unknown), waiting(cloud, "stubborn") >= 1) == ([], True)
    yield
    for task_id in (*tracked, unknown):
        assert cloud.wait_for_end(task_id).status == "succeeded"
        assert len(notes(cloud, task_id)) == 1
    assert (cloud.wait_for_end(failing).status, cloud.wait_for_end(failing).reason) == ("failed", "RouteMismatch")


Story = Callable[[DeployedCloud], "Iterator[None]"]
# x-sink holds on to what it cannot report, in as many processes as it may have: the gateway's outage wants all of them.
STORIES: tuple[Story, ...] = (the_gateway_is_down, s3_refuses_writes, a_table_refuses_claims, a_table_takes_no_records)


@pytest.fixture(scope="module")
def outages(paths: DeployedCloud) -> dict[str, Iterator[None]]:
    """Every story as far as its outage, one after the other."""
    begun = {story.__name__: story(paths) for story in STORIES}
    for story in begun.values():
        next(story)
    return begun


def goes_on(story: Iterator[None]) -> None:
    """The rest of a story."""
    assert next(story, "nothing more") == "nothing more"


@pytest.mark.rule("11.sink.failed-upload")
def test_s3_refuses_writes_the_end_is_reported_and_written_when_s3_is_back(outages: dict[str, Iterator[None]]) -> None:
    goes_on(outages["s3_refuses_writes"])


def test_a_table_that_refuses_claims_delays_the_end(outages: dict[str, Iterator[None]]) -> None:
    goes_on(outages["a_table_refuses_claims"])


def test_a_table_that_takes_no_records_loses_no_end(outages: dict[str, Iterator[None]]) -> None:
    goes_on(outages["a_table_takes_no_records"])


def test_the_gateway_is_down_and_every_final_status_arrives(outages: dict[str, Iterator[None]]) -> None:
    goes_on(outages["the_gateway_is_down"])
