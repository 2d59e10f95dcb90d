"""Tests protocol §11 during outages of S3, the tables and the gateway: nothing is lost. IAM is enforced.

Each generator makes an outage, and checks its consequences after the `yield`. The fixture runs all outages before the
first test, because SQS delivers the retained messages again only some seconds later.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from asya.capabilities.operations.aws.logs import FunctionLogs
from asya.protocol import names
from tests.cloud.denials import denied
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.paths_mesh import NewEnvelope, notes, send, wait_for_final_state
from tests.cloud.slice_sets import merged_payload, send_all, slice_messages
from tests.cloud.unread_queues import unread

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.cloud

FULL = bool(os.environ.get("ASYA_FULL_SIZE"))
OUTAGE_SECONDS = 120.0 if FULL else 0.0
"""The minimum duration of the gateway's outage. SQS gives a message up after five receives, in about 100 s."""


@contextmanager
def without_gateway(cloud: DeployedCloud, *functions: str) -> Iterator[None]:
    """Lets these functions call a gateway that accepts connections and never answers."""
    client, namespace = cloud.client("lambda"), cloud.mesh.connection.namespace
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        variables = {}
        for function in functions:
            name = names.function_name(namespace, function)
            variables[name] = client.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
            changed = variables[name] | {"ASYA_GATEWAY_URL": address}
            client.update_function_configuration(FunctionName=name, Environment={"Variables": changed})
        try:
            yield
        finally:
            for name, previous in variables.items():
                client.update_function_configuration(FunctionName=name, Environment={"Variables": previous})


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
    logs = FunctionLogs(cloud.client("logs"), cloud.mesh.connection.namespace, lambda: datetime.now(UTC))
    return any(all(word in each.line for word in words) for each in logs.lines(actor, since))


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
        for actor in (names.SINK, names.CHECKPOINT, "approve"):
            outage.enter_context(denied(cloud, actor, "s3:PutObject"))
        task_id = send(cloud, NewEnvelope(["helper"], {"n": 1}))
        failing = send(cloud, NewEnvelope(["helper", "nobody"], {}))
        passing = send(cloud, with_status(NewEnvelope(["x-checkpoint", "once"], {"n": 4})))
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
        # Its first report may still be on the way.
        assert until(lambda: cloud.mesh.task(pausing), "the task that cannot pause").pause is None
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
    """Denies the writes of records to the function that takes the reports."""
    actions = ("dynamodb:PutItem", "dynamodb:BatchWriteItem", "dynamodb:UpdateItem", "dynamodb:TransactWriteItems")
    start = time.time()
    with denied(cloud, names.REPORTS, *actions):
        task_id = send(cloud, with_status(NewEnvelope(["once"], {"n": 3})))
        until_stored(cloud, task_id)
        until(lambda: has_logged(cloud, names.REPORTS, "message kept", since=start) or None, "a report to be kept")
        assert cloud.mesh.task(task_id) is None
        assert pending_messages(cloud, names.ENDS) >= 1
        # No envelope waits for its reports.
        until(lambda: pending_messages(cloud, names.SINK) == 0 or None, "x-sink to be done")
    yield
    end = wait_for_final_state(cloud, task_id)
    assert (end.task.status, end.payload) == ("succeeded", {"n": 3})
    assert len(notes(cloud, task_id)) == 1


def gateway_outage(cloud: DeployedCloud) -> Iterator[None]:
    """Makes the HTTP API unreachable for functions, and leaves all reports in their queues.

    In full size envelopes come during two minutes. A function that waits for the gateway would give each of them up after
    five receives, in less than that time.
    """
    start, count = time.time(), 0
    raw: list[str] = []
    with without_gateway(cloud, "once", "helper"), unread(cloud, *names.REPORT_QUEUES):
        with_statuses = [send(cloud, with_status(NewEnvelope(["once"], {"n": number}))) for number in range(3)]
        failing = send(cloud, with_status(NewEnvelope(["helper", "nobody"], {})))
        while not raw or time.time() < start + OUTAGE_SECONDS:
            raw += [send(cloud, NewEnvelope(["once", "helper"], {"n": number})) for number in range(3)]
            for task_id in raw[count:]:
                until_stored(cloud, task_id)
            count = len(raw)
        for task_id in with_statuses:
            until_stored(cloud, task_id)
        task_ids = [*with_statuses, *raw]
        # Each handler was called once, and x-sink has every result, although no task is known.
        assert [len(notes(cloud, task_id)) for task_id in task_ids] == [1] * len(task_ids)
        assert [cloud.mesh.task(task_id) for task_id in (*task_ids, failing)] == [None] * (len(task_ids) + 1)
        assert min(pending_messages(cloud, queue) for queue in names.REPORT_QUEUES) >= 1
    yield
    for task_id in task_ids:
        assert cloud.wait_for_end(task_id).status == "succeeded"
        assert len(notes(cloud, task_id)) == 1
    for task_id in raw:
        until_complete(cloud, task_id, ["once", "helper"])
    assert (cloud.wait_for_end(failing).status, cloud.wait_for_end(failing).reason) == ("failed", "RouteMismatch")
    assert cloud.dead_letters() == {}


def until_complete(cloud: DeployedCloud, task_id: str, actors: list[str]) -> None:
    """Waits until each hop is in the timeline with all of its statuses."""

    def poll() -> bool | None:
        hops = cloud.mesh.timeline(task_id)
        is_complete = all(hop.received_at and hop.processing_at and hop.completed_at for hop in hops)
        return ([hop.actor for hop in hops] == actors and is_complete) or None

    until(poll, f"the hops of {task_id}")


Outage = Callable[[DeployedCloud], "Iterator[None]"]
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
