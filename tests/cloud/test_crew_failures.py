"""protocol §11 when what the crew stands on gives way: S3, the tables, the gateway. IAM is enforced; nothing is lost.

Each story has an outage and, after its `yield`, what was to come of it. All outages are gone through before the first test looks:
what was kept comes again some seconds later, meanwhile there is the next outage.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from asya.protocol import names
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.journeys import Journey, end_of, notes, send

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.cloud


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
    return cloud.messages(names.queue_name(cloud.mesh.connection.namespace, actor))


def taken(cloud: DeployedCloud, actor: str) -> int:
    """Messages that an actor has taken from its queue."""
    sqs, attribute = cloud.client("sqs"), "ApproximateNumberOfMessagesNotVisible"
    url = sqs.get_queue_url(QueueName=names.queue_name(cloud.mesh.connection.namespace, actor))["QueueUrl"]
    return int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[attribute])["Attributes"][attribute])


def kept_for_want_of(cloud: DeployedCloud, actor: str, what: str, since: float) -> bool:
    """Whether an actor has logged since then that it keeps a message, because it may not do this."""
    group = f"/aws/lambda/{names.function_name(cloud.mesh.connection.namespace, actor)}"
    found = cloud.client("logs").filter_log_events(logGroupName=group, startTime=int(since * 1000))
    return any("message kept" in each["message"] and what in each["message"] for each in found["events"])


def written(cloud: DeployedCloud, envelope_id: str) -> bool:
    """Whether x-sink has written an envelope, whoever knows of it."""
    place = cloud.mesh.connection.results
    found = cloud.client("s3").list_objects_v2(Bucket=place.bucket, Prefix=f"{place.prefix}happy-asya/")
    return any(each["Key"].endswith(f"/{envelope_id}.json") for each in found.get("Contents", []))


def until_written(cloud: DeployedCloud, envelope_id: str) -> None:
    """Wait for x-sink to write an envelope."""
    until(lambda: written(cloud, envelope_id) or None, f"{envelope_id} to be written")


def known(envelope: Journey) -> Journey:
    """With a status, as the gateway would send it: no sidecar has to make it known first."""
    return Journey(envelope.route, envelope.payload, status={"phase": "pending"})


def s3_refuses_writes(cloud: DeployedCloud) -> Iterator[None]:
    """To x-sink and x-sump, both at once."""
    with denied(cloud, names.SINK, "s3:PutObject"), denied(cloud, names.SUMP, "s3:PutObject"):
        task_id = send(cloud, Journey(["helper"], {"n": 1}))
        failing = send(cloud, Journey(["helper", "nobody"], {}))
        task = cloud.ended(task_id)
        assert (task.status, task.result_uri) == ("succeeded", None)
        assert json.loads(bytes(task.result)) == {"n": 1, "steps": 1}  # type: ignore[arg-type]
        failed = cloud.ended(failing)
        assert (failed.status, failed.reason) == ("failed", "RouteMismatch")
        assert waiting(cloud, names.SINK) >= 1
        assert waiting(cloud, names.SUMP) >= 1
    yield
    end = end_of(cloud, task_id)
    assert end.payload == {"n": 1, "steps": 1}
    assert (end.task.status, end.task.updated_at) == ("succeeded", task.updated_at)
    stored = until(lambda: cloud.mesh.stored(failing), "the copy")
    assert f"/sump/{failing}.json" in stored.uri


def a_table_refuses_claims(cloud: DeployedCloud) -> Iterator[None]:
    """Of x-sink's."""
    began = time.time()
    with denied(cloud, names.SINK, "dynamodb:UpdateItem"):
        task_id = send(cloud, Journey(["once"], {"n": 2}))
        until(lambda: notes(cloud, task_id) or None, "the handler to be called")
        until(lambda: kept_for_want_of(cloud, names.SINK, "UpdateItem", began) or None, "x-sink to keep the message")
        assert not written(cloud, task_id)
    yield
    assert end_of(cloud, task_id).payload == {"n": 2}
    assert len(notes(cloud, task_id)) == 1


def a_table_takes_no_records(cloud: DeployedCloud) -> Iterator[None]:
    """Of the status endpoint's."""
    refused = ("dynamodb:PutItem", "dynamodb:BatchWriteItem", "dynamodb:UpdateItem")
    with denied(cloud, names.GATEWAY_INGEST, *refused):
        task_id = send(cloud, known(Journey(["once"], {"n": 3})))
        until_written(cloud, task_id)
        assert cloud.mesh.task(task_id) is None
        assert waiting(cloud, names.SINK) >= 1
    yield
    end = end_of(cloud, task_id)
    assert (end.task.status, end.payload) == ("succeeded", {"n": 3})
    assert len(notes(cloud, task_id)) == 1


def the_gateway_is_down(cloud: DeployedCloud) -> Iterator[None]:
    """For whoever reports."""
    with down(cloud, names.GATEWAY_INGEST):
        # Alone in its batch: it has nobody else wait with it.
        unknown = send(cloud, Journey(["once"], {"n": "unknown"}))
        until(lambda: taken(cloud, "once") or None, "the first to be taken")
        tracked = [send(cloud, known(Journey(["once"], {"n": number}))) for number in range(3)]
        failing = send(cloud, known(Journey(["helper", "nobody"], {})))
        for task_id in tracked:
            until_written(cloud, task_id)
        assert [cloud.mesh.task(task_id) for task_id in (*tracked, unknown, failing)] == [None] * 5
        # What nobody has been told of waits before its first handler.
        assert (notes(cloud, unknown), waiting(cloud, "once") >= 1) == ([], True)
    yield
    for task_id in (*tracked, unknown):
        assert cloud.ended(task_id).status == "succeeded"
        assert len(notes(cloud, task_id)) == 1
    assert (cloud.ended(failing).status, cloud.ended(failing).reason) == ("failed", "RouteMismatch")


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


def test_s3_refuses_writes_the_end_is_reported_and_written_when_s3_is_back(outages: dict[str, Iterator[None]]) -> None:
    goes_on(outages["s3_refuses_writes"])


def test_a_table_that_refuses_claims_delays_the_end(outages: dict[str, Iterator[None]]) -> None:
    goes_on(outages["a_table_refuses_claims"])


def test_a_table_that_takes_no_records_loses_no_end(outages: dict[str, Iterator[None]]) -> None:
    goes_on(outages["a_table_takes_no_records"])


def test_the_gateway_is_down_and_every_final_status_arrives(outages: dict[str, Iterator[None]]) -> None:
    goes_on(outages["the_gateway_is_down"])
