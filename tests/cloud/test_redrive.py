"""Tests redriving dead letters and replaying failed envelopes (`protocol §12`), with IAM enforced."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from asya.capabilities.dead_letters.aws.letters import DeadLetterQueue
from asya.protocol import names
from asya.protocol.codec import decode
from asya.protocol.status import created
from asya.protocol.times import format_time
from asya_cli.main import app
from tests.cloud.callers import operator
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.environment import now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.testing import Result

    from asya.tasks.view import TaskView

pytestmark = pytest.mark.cloud


def asya(cloud: DeployedCloud, *arguments: str, fails: bool = False) -> str:
    """Runs the command and returns its standard output; after an expected failure also its error."""
    result = CliRunner().invoke(app, [*arguments, "--state", str(cloud.state)])
    assert (result.exit_code != 0) == fails, (result.output, result.exception)
    return result.stdout if not fails else result.output + str(getattr(result.exception, "problem", ""))


def redrive(cloud: DeployedCloud, *arguments: str, says: str, fails: bool = False) -> None:
    """Redrives dead letters until the command says this: x-dlq hides them while it reads them."""

    def call() -> Result | None:
        result = CliRunner().invoke(app, ["dlq", "redrive", *arguments, "--state", str(cloud.state)])
        return result if says in result.output else None

    result = until(call, f"the redrive to say {says!r}")
    assert (result.exit_code != 0) == fails, (result.output, result.exception)


def start(cloud: DeployedCloud, envelope_id: str, *route: str) -> None:
    envelope = {
        "id": envelope_id,
        "route": {"prev": [], "curr": route[0], "next": list(route[1:])},
        "payload": {"order": envelope_id},
    }
    cloud.send_raw(route[0], json.dumps(envelope))


def wait_for_success(cloud: DeployedCloud, envelope_id: str, generation: int) -> TaskView:
    """Waits until the task has succeeded in this generation, and returns it."""

    def poll() -> TaskView | None:
        task = cloud.task(envelope_id)
        return task if task and (task.status, task.generation) == ("succeeded", generation) else None

    return until(poll, f"{envelope_id} to succeed in generation {generation}")


def invoke_dlq_function(cloud: DeployedCloud) -> None:
    """Runs x-dlq at once, as the clock does every minute."""
    cloud.run_scheduled(names.DLQ)


@pytest.fixture(scope="module", autouse=True)
def broken_courier(paths: DeployedCloud) -> Iterator[ExitStack]:
    """Sends an order that kills the process of courier, which gives it up after its only start.

    Closing the stack fixes courier.
    """
    with ExitStack() as broken:
        broken.callback(paths.mesh.upload, "flags/courier", b"fixed")
        start(paths, "order-1", "courier", "x-checkpoint", "clerk")
        yield broken


@pytest.mark.rule("12.refused")
def test_a_succeeded_task_is_redriven_only_by_force(paths: DeployedCloud) -> None:
    paths.mesh.upload("flags/clerk", b"fixed")
    start(paths, "order-3", "clerk")
    assert paths.wait_for_end("order-3").status == "succeeded"
    # As it leaves a hop of the mesh. A letter without a status would start a task of its sender, and the id has another owner.
    body = {
        "id": "order-3",
        "route": {"prev": [], "curr": "clerk", "next": []},
        "status": msgspec.to_builtins(created("clerk", format_time(now()))),
        "payload": {"order": "again"},
    }
    dlq = names.dlq_name("paths", "clerk")
    sqs = paths.mesh_sqs()
    sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName=dlq)["QueueUrl"], MessageBody=json.dumps(body))
    redrive(paths, "clerk", says="order-3  refused: task 'order-3' succeeded", fails=True)
    assert paths.message_count(dlq) == 1
    redrive(paths, "clerk", "--force", says="sent again in generation 1")
    task = wait_for_success(paths, "order-3", generation=1)
    assert paths.envelope(task)["payload"] == {"order": "again", "booked": True}


@pytest.mark.rule("4.dead-letters", "4.starts.single", "4.starts.end")
def test_a_dead_letter_is_reported_kept_and_redriven_after_the_fix(
    paths: DeployedCloud, broken_courier: ExitStack
) -> None:
    dlq = names.dlq_name("paths", "courier")
    paths.mesh.upload("flags/clerk", b"fixed")
    until(lambda: paths.message_count(dlq) or None, "the dead letter", seconds=240)

    invoke_dlq_function(paths)
    failed = paths.wait_for_end("order-1")
    assert (failed.status, failed.reason, failed.generation) == ("failed", "DeliveryExhausted", 0)
    assert failed.error is not None
    assert dlq in failed.error.message
    assert "the only start did not come to an end" in failed.error.message
    invoke_dlq_function(paths)
    assert paths.message_count(dlq) == 1

    assert "order-1" in asya(paths, "dlq", "list")
    body = asya(paths, "dlq", "show", "order-1", "courier")
    assert decode(body.encode()).route.curr == "courier"
    redrive(paths, "courier", "--error", "exhausted", "--dry-run", says="would be sent")
    assert asya(paths, "dlq", "redrive", "--error", "another error") == ""
    assert paths.message_count(dlq) == 1

    broken_courier.close()
    redrive(paths, "--id", "order-1", says="order-1  sent again in generation 1")
    task = wait_for_success(paths, "order-1", generation=1)
    assert [(each.generation, each.status, each.reason) for each in task.earlier] == [
        (0, "failed", "DeliveryExhausted")
    ]
    assert paths.envelope(task)["payload"] == {"order": "order-1", "carried": True, "booked": True}
    assert paths.envelope(task)["headers"]["x-asya-generation"] == 1
    assert paths.message_count(dlq) == 0
    assert "before" in asya(paths, "status", "order-1")


@pytest.mark.rule("5.12.forbidden")
def test_an_envelope_to_an_actor_that_its_sender_may_not_send_to_fails_at_once(paths: DeployedCloud) -> None:
    envelope = {
        "id": "order-4",
        "route": {"prev": [], "curr": "courier", "next": ["clerk"]},
        "payload": {"order": "order-4", "to": "closed"},
    }
    paths.send_raw("courier", json.dumps(envelope))
    failed = paths.wait_for_end("order-4")
    assert (failed.status, failed.reason) == ("failed", "RouteMismatch")
    assert failed.error is not None
    assert "actor 'courier' may not send to 'closed'" in failed.error.message
    assert "under actors.courier: can_send_to: [clerk, closed]" in failed.error.message


@pytest.mark.rule("12.old-task")
def test_a_replay_creates_a_new_task_and_leaves_the_old_one_unchanged(
    paths: DeployedCloud, broken_courier: ExitStack
) -> None:
    connection = paths.mesh.connection
    broken_courier.close()
    connection.s3().delete_object(Bucket=connection.data.bucket, Key=connection.data.prefix + "flags/clerk")
    start(paths, "order-2", "courier", "x-checkpoint", "clerk")
    old = paths.wait_for_end("order-2")
    assert (old.status, old.error and old.error.message) == ("failed", "no such order: order-2")

    paths.mesh.upload("flags/clerk", b"fixed")
    for options in ([], ["--from", "2", "--force"], ["--from-checkpoint", "1", "--force"]):
        new_id = asya(paths, "replay", "order-2", *options).strip()
        new = paths.wait_for_end(new_id)
        assert (new_id != "order-2", new.status, new.generation) == (True, "succeeded", 0)
        envelope = paths.envelope(new)
        assert envelope["headers"]["x-asya-replay-of"] == "order-2"
        assert envelope["payload"] == {"order": "order-2", "carried": True, "booked": True}
    error = asya(paths, "replay", "order-2", "--from", "0", fails=True)
    assert "where it failed or hop 2 or checkpoint 1" in error
    settled = paths.mesh.task("order-2")
    assert settled is not None
    assert settled.resolution is not None
    assert (settled.resolution.task, settled.resolution.status) == (new_id, "succeeded")
    assert replace(settled, resolution=None) == old
    assert f"was replayed as '{new_id}', which has succeeded" in asya(paths, "replay", "order-2", fails=True)


@pytest.mark.rule("13.operations.dead-letters", "13.operations.dead-letters.visible")
def test_an_operator_sees_a_dead_letter_which_stays_in_its_queue(paths: DeployedCloud) -> None:
    body = {"id": "letter-1", "route": {"prev": [], "curr": "clerk", "next": []}, "payload": {"order": "seen"}}
    sqs = paths.mesh_sqs()
    url = sqs.get_queue_url(QueueName=names.dlq_name("paths", "clerk"))["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody=json.dumps(body))

    def shown() -> dict[str, Any] | None:  # x-dlq hides letters while it reports them
        status, page = operator(paths).call("GET", "/api/v1/operations/dead-letters", actor="clerk")
        assert status == 200, page
        return next((item for item in page["items"] if item["id"] == "letter-1"), None)

    for _ in range(2):
        assert json.loads(until(shown, "the dead letter")["body"]) == body
    status, mesh = operator(paths).call("GET", "/api/v1/operations/mesh")
    clerk = next(actor for actor in mesh["actors"] if actor["name"] == "clerk")
    assert (status, clerk["dead_letters"] >= 1) == (200, True)
    status, details = operator(paths).call("GET", "/api/v1/operations/actors/clerk")
    assert (status, details["numbers"]["name"]) == (200, "clerk"), details

    def removed() -> bool | None:
        queue = DeadLetterQueue(sqs, url)
        letters = [each for batch in queue.scan(hide_seconds=30) for each in batch]
        own = [each for each in letters if each.arrival.envelope().id == "letter-1"]
        for each in own:
            queue.delete(each)
        queue.release([each for each in letters if each not in own])
        return bool(own) or None

    until(removed, "the dead letter to be removed")
