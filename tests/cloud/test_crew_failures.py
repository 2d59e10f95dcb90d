"""Tests protocol §11 during outages of S3, the tables and the gateway: nothing is lost. IAM is enforced.

Each generator makes an outage, and checks its consequences after the `yield`. The fixture runs all outages before the
first test, because SQS delivers the retained messages again only some seconds later.
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
"""The minimum duration of the gateway's outage; `make test-full` sets it."""


@contextmanager
def denied(cloud: DeployedCloud, function: str, *actions: str, resource: str = "*") -> Iterator[None]:
    """Denies these actions to the role of a function."""
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
    """Makes every call of a function fail."""
    functions = cloud.client("lambda")
    name = names.function_name(cloud.mesh.connection.namespace, function)
    handler = functions.get_function_configuration(FunctionName=name)["Handler"]
    functions.update_function_configuration(FunctionName=name, Handler="nothing.there")
    try:
        yield
    finally:
        functions.update_function_configuration(FunctionName=name, Handler=handler)


def pending_messages(cloud: DeployedCloud, actor: str) -> int:
    """Counts the messages on an actor's queue, visible or in flight."""
    return cloud.message_count(names.queue_name(cloud.mesh.connection.namespace, actor))


def until_denied(cloud: DeployedCloud, actor: str, action: str, since: float) -> None:
    """Waits until an actor has logged that it left a message on its queue because this action was denied."""
    until(
        lambda: has_logged(cloud, actor, "message kept", action, since=since) or None,
        f"{actor} to be denied {action}",
    )


def has_logged(cloud: DeployedCloud, actor: str, *words: str, since: float) -> bool:
    """Returns whether an actor has logged a line with these words; `since` is in seconds since the epoch."""
    group = f"/aws/lambda/{names.function_name(cloud.mesh.connection.namespace, actor)}"
    pages = cloud.client("logs").get_paginator("filter_log_events")
    lines = (
        each["message"]
        for page in pages.paginate(logGroupName=group, startTime=int(since * 1000))
        for each in page["events"]
    )
    return any(all(word in line for word in words) for line in lines)


def is_stored(cloud: DeployedCloud, envelope_id: str) -> bool:
    """Returns whether x-sink has stored an envelope, even if nothing has reported it."""
    results = cloud.mesh.connection.results
    page = cloud.client("s3").list_objects_v2(Bucket=results.bucket, Prefix=f"{results.prefix}happy-asya/")
    return any(each["Key"].endswith(f"/{envelope_id}.json") for each in page.get("Contents", []))


def until_stored(cloud: DeployedCloud, envelope_id: str) -> None:
    """Waits until x-sink has stored an envelope."""
    until(lambda: is_stored(cloud, envelope_id) or None, f"{envelope_id} to be stored")


def with_status(envelope: NewEnvelope) -> NewEnvelope:
    """Adds a status, as the gateway does; without one, the first sidecar registers the task."""
    return NewEnvelope(envelope.route, envelope.payload, status={"phase": "pending"})


def denied_uploads(cloud: DeployedCloud) -> Iterator[None]:
    """Denies writes to x-sink, x-sump, x-checkpoint and a pause at once."""
    start = time.time()
    with ExitStack() as outage:
        for actor in (names.SINK, names.SUMP, names.CHECKPOINT, "approve"):
            outage.enter_context(denied(cloud, actor, "s3:PutObject"))
        task_id = send(cloud, NewEnvelope(["helper"], {"n": 1}))
        failing = send(cloud, NewEnvelope(["helper", "nobody"], {}))
        passing = send(cloud, NewEnvelope(["x-checkpoint", "once"], {"n": 4}))
        pausing = send(cloud, NewEnvelope(["approve"], {}))
        task = cloud.wait_for_end(task_id)
        assert (task.status, task.result_uri) == ("succeeded", None)
        assert json.loads(bytes(task.result)) == {"n": 1, "steps": 1}  # type: ignore[arg-type]
        failed = cloud.wait_for_end(failing)
        assert (failed.status, failed.reason) == ("failed", "RouteMismatch")
        assert pending_messages(cloud, names.SINK) >= 1
        assert pending_messages(cloud, names.SUMP) >= 1
        for actor in (names.CHECKPOINT, "approve"):
            until_denied(cloud, actor, "PutObject", start)
        assert notes(cloud, passing) == []
        assert cloud.mesh.task(pausing).pause is None  # type: ignore[union-attr]
    yield
    end = wait_for_final_state(cloud, task_id)
    assert end.payload == {"n": 1, "steps": 1}
    assert (end.task.status, end.task.updated_at) == ("succeeded", task.updated_at)
    copy = until(lambda: cloud.mesh.stored(failing), "the copy")
    assert f"/sump/{failing}.json" in copy.uri
    assert has_logged(cloud, names.SUMP, "envelope failed", failing, since=start)
    assert wait_for_final_state(cloud, passing).payload == {"n": 4}
    results = cloud.mesh.connection.results
    checkpoint = json.loads(cloud.mesh.fetch(f"{results.uri}checkpoint/{passing}/0.json") or b"")
    assert (checkpoint["id"], checkpoint["payload"]) == (passing, {"n": 4})
    paused = until(lambda: task if (task := cloud.task(pausing)) and task.pause else None, "the task to pause")
    assert paused.status == "paused"
    cloud.mesh.cancel(pausing)


def denied_claims(cloud: DeployedCloud) -> Iterator[None]:
    """Denies the claims of results to x-sink, and the claims of slices to a fan-in actor."""
    start = time.time()
    with denied(cloud, names.SINK, "dynamodb:UpdateItem"), denied(cloud, "gather", "dynamodb:UpdateItem"):
        task_id, origin = send(cloud, NewEnvelope(["once"], {"n": 2})), str(uuid4())
        send_all(cloud, "gather", slice_messages(origin, 3, at="gather"))
        until(lambda: notes(cloud, task_id) or None, "the handler to be called")
        until_denied(cloud, names.SINK, "UpdateItem", start)
        until_denied(cloud, "gather", "UpdateItem", start)
        assert not is_stored(cloud, task_id)
        assert notes(cloud, origin) == []
    yield
    assert wait_for_final_state(cloud, task_id).payload == {"n": 2}
    assert wait_for_final_state(cloud, origin).payload == merged_payload(3)
    assert [len(notes(cloud, envelope_id)) for envelope_id in (task_id, origin)] == [1, 1]


def denied_records(cloud: DeployedCloud) -> Iterator[None]:
    """Denies the writes of records to the gateway."""
    actions = ("dynamodb:PutItem", "dynamodb:BatchWriteItem", "dynamodb:UpdateItem")
    with denied(cloud, names.GATEWAY_INGEST, *actions):
        task_id = send(cloud, with_status(NewEnvelope(["once"], {"n": 3})))
        until_stored(cloud, task_id)
        assert cloud.mesh.task(task_id) is None
        assert pending_messages(cloud, names.SINK) >= 1
    yield
    end = wait_for_final_state(cloud, task_id)
    assert (end.task.status, end.payload) == ("succeeded", {"n": 3})
    assert len(notes(cloud, task_id)) == 1


def gateway_outage(cloud: DeployedCloud) -> Iterator[None]:
    """Breaks the gateway function that receives the reports."""
    start = time.time()
    with down(cloud, names.GATEWAY_INGEST):
        # This envelope has its own actor, because it would delay the others of its SQS batch.
        without_status = send(cloud, NewEnvelope(["stubborn"], {"until": 1}))
        task_ids = [send(cloud, with_status(NewEnvelope(["once"], {"n": number}))) for number in range(3)]
        failing = send(cloud, with_status(NewEnvelope(["helper", "nobody"], {})))
        for task_id in task_ids:
            until_stored(cloud, task_id)
        assert [cloud.mesh.task(task_id) for task_id in (*task_ids, without_status, failing)] == [None] * 5
        until(lambda: time.time() > start + OUTAGE_SECONDS or None, "the outage to last long enough")
        # An envelope without a status waits for the gateway before its first handler.
        assert (notes(cloud, without_status), pending_messages(cloud, "stubborn") >= 1) == ([], True)
    yield
    for task_id in (*task_ids, without_status):
        assert cloud.wait_for_end(task_id).status == "succeeded"
        assert len(notes(cloud, task_id)) == 1
    assert (cloud.wait_for_end(failing).status, cloud.wait_for_end(failing).reason) == ("failed", "RouteMismatch")


Outage = Callable[[DeployedCloud], "Iterator[None]"]
# The outage of the gateway is first: it occupies every process of x-sink, which retries its required reports.
OUTAGES: tuple[Outage, ...] = (gateway_outage, denied_uploads, denied_claims, denied_records)


@pytest.fixture(scope="module")
def outages(paths: DeployedCloud) -> dict[str, Iterator[None]]:
    """Runs the outages one after the other; the generators continue with their checks."""
    started = {outage.__name__: outage(paths) for outage in OUTAGES}
    for outage in started.values():
        next(outage)
    return started


def run_checks(outage: Iterator[None]) -> None:
    """Runs the checks after an outage."""
    assert next(outage, "end") == "end"


@pytest.mark.rule("11.sink.failed-upload")
def test_an_end_is_reported_during_an_s3_outage_and_stored_after_it(outages: dict[str, Iterator[None]]) -> None:
    run_checks(outages["denied_uploads"])


def test_denied_claims_delay_the_end(outages: dict[str, Iterator[None]]) -> None:
    run_checks(outages["denied_claims"])


def test_denied_records_lose_no_end(outages: dict[str, Iterator[None]]) -> None:
    run_checks(outages["denied_records"])


def test_every_final_status_arrives_after_a_gateway_outage(outages: dict[str, Iterator[None]]) -> None:
    run_checks(outages["gateway_outage"])
