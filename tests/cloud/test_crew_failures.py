"""protocol §11 when what the crew stands on gives way: S3, the tables, the gateway. IAM is enforced; nothing is lost."""

from __future__ import annotations

import json
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


def test_s3_refuses_writes_the_end_is_reported_and_written_when_s3_is_back(paths: DeployedCloud) -> None:
    with denied(paths, names.SINK, "s3:PutObject"):
        task_id = send(paths, Journey(["helper"], {"n": 1}))
        task = paths.ended(task_id)
        assert (task.status, task.result_uri) == ("succeeded", None)
        assert json.loads(bytes(task.result)) == {"n": 1, "steps": 1}  # type: ignore[arg-type]
        assert waiting(paths, names.SINK) >= 1
    end = end_of(paths, task_id)
    assert end.payload == {"n": 1, "steps": 1}
    assert (end.task.status, end.task.updated_at) == ("succeeded", task.updated_at)


def test_the_sump_keeps_what_it_cannot_copy(paths: DeployedCloud) -> None:
    with denied(paths, names.SUMP, "s3:PutObject"):
        task_id = send(paths, Journey(["helper", "nobody"], {}))
        task = paths.ended(task_id)
        assert (task.status, task.reason) == ("failed", "RouteMismatch")
        until(lambda: waiting(paths, names.SUMP) or None, "the message to be kept")
    stored = until(lambda: paths.mesh.stored(task_id), "the copy")
    assert f"/sump/{task_id}.json" in stored.uri


def test_a_table_that_refuses_claims_delays_the_end(paths: DeployedCloud) -> None:
    with denied(paths, names.SINK, "dynamodb:UpdateItem"):
        task_id = send(paths, Journey(["once"], {"n": 2}))
        until(lambda: notes(paths, task_id) or None, "the handler to be called")
        until(lambda: waiting(paths, names.SINK) or None, "x-sink to have the message")
        assert not written(paths, task_id)
    assert end_of(paths, task_id).payload == {"n": 2}
    assert len(notes(paths, task_id)) == 1


def test_a_table_that_takes_no_records_loses_no_end(paths: DeployedCloud) -> None:
    refused = ("dynamodb:PutItem", "dynamodb:BatchWriteItem", "dynamodb:UpdateItem")
    with denied(paths, names.GATEWAY_INGEST, *refused):
        task_id = send(paths, known(Journey(["once"], {"n": 3})))
        until_written(paths, task_id)
        assert paths.mesh.task(task_id) is None
        assert waiting(paths, names.SINK) >= 1
    end = end_of(paths, task_id)
    assert (end.task.status, end.payload) == ("succeeded", {"n": 3})
    assert len(notes(paths, task_id)) == 1


def test_the_gateway_is_down_and_every_final_status_arrives(paths: DeployedCloud) -> None:
    with down(paths, names.GATEWAY_INGEST):
        tracked = [send(paths, known(Journey(["once"], {"n": number}))) for number in range(3)]
        unknown = send(paths, Journey(["once"], {"n": "unknown"}))
        failing = send(paths, known(Journey(["helper", "nobody"], {})))
        for task_id in tracked:
            until_written(paths, task_id)
        assert [paths.mesh.task(task_id) for task_id in (*tracked, unknown, failing)] == [None] * 5
        # What nobody has been told of waits before its first handler.
        assert (notes(paths, unknown), waiting(paths, "once") >= 1) == ([], True)
    for task_id in (*tracked, unknown):
        assert paths.ended(task_id).status == "succeeded"
        assert len(notes(paths, task_id)) == 1
    assert (paths.ended(failing).status, paths.ended(failing).reason) == ("failed", "RouteMismatch")
