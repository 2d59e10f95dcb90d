"""What failed runs again: a dead letter is redriven, a failed envelope replayed (`protocol §12`). IAM is enforced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from asya.protocol import names
from asya.protocol.codec import decode
from asya_cli.main import app
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.paths import PROJECT

if TYPE_CHECKING:
    from asya.tasks.view import TaskView

pytestmark = pytest.mark.cloud

ALARM = json.loads((PROJECT / "events" / "lambda" / "dead-letters-alarm.json").read_text())


def asya(cloud: DeployedCloud, *arguments: str, fails: bool = False) -> str:
    """What the command prints on its standard output."""
    done = CliRunner().invoke(app, [*arguments, "--state", str(cloud.state)])
    assert (done.exit_code != 0) == fails, (done.output, done.exception)
    return done.stdout if not fails else done.output + str(getattr(done.exception, "problem", ""))


def start(cloud: DeployedCloud, envelope_id: str, *route: str) -> None:
    envelope = {
        "id": envelope_id,
        "route": {"prev": [], "curr": route[0], "next": list(route[1:])},
        "payload": {"order": envelope_id},
    }
    cloud.send_raw(route[0], json.dumps(envelope))


def succeeded(cloud: DeployedCloud, envelope_id: str, generation: int) -> TaskView:
    """The task, once it has succeeded in this generation."""

    def look() -> TaskView | None:
        task = cloud.task(envelope_id)
        return task if task and (task.status, task.generation) == ("succeeded", generation) else None

    return until(look, f"{envelope_id} to succeed in generation {generation}")


def wake_the_dlq_function(cloud: DeployedCloud, actor: str) -> None:
    """As the alarm of a dead-letter queue does on AWS: the local cloud's alarms see no queue."""
    namespace = cloud.mesh.connection.namespace
    event = ALARM | {"detail": ALARM["detail"] | {"alarmName": names.dlq_name(namespace, actor)}}
    name = names.function_name(namespace, names.DLQ)
    answer = cloud.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event).encode())
    assert "FunctionError" not in answer, answer["Payload"].read()


@pytest.fixture(scope="module", autouse=True)
def begun(paths: DeployedCloud) -> None:
    """An order that its courier cannot deliver: it is given up some seconds later, after a second receive."""
    start(paths, "order-1", "courier", "x-checkpoint", "clerk")


@pytest.mark.rule("12.refused")
def test_what_succeeded_is_not_redriven_unless_forced(paths: DeployedCloud) -> None:
    paths.mesh.upload("flags/clerk", b"mended")
    start(paths, "order-3", "clerk")
    assert paths.wait_for_end("order-3").status == "succeeded"
    body = {"id": "order-3", "route": {"prev": [], "curr": "clerk", "next": []}, "payload": {"order": "again"}}
    dlq = names.dlq_name("paths", "clerk")
    sqs = paths.client("sqs")
    sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName=dlq)["QueueUrl"], MessageBody=json.dumps(body))
    assert "order-3  refused: task 'order-3' succeeded" in asya(paths, "dlq", "redrive", "clerk", fails=True)
    assert paths.message_count(dlq) == 1
    assert "sent again in generation 1" in asya(paths, "dlq", "redrive", "clerk", "--force")
    task = succeeded(paths, "order-3", generation=1)
    assert paths.envelope(task)["payload"] == {"order": "again", "booked": True}


@pytest.mark.rule("4.dead-letters")
def test_a_dead_letter_is_reported_left_and_redriven_once_the_cause_is_mended(paths: DeployedCloud) -> None:
    dlq = names.dlq_name("paths", "courier")
    paths.mesh.upload("flags/clerk", b"mended")
    until(lambda: paths.message_count(dlq) or None, "the message to be given up")

    wake_the_dlq_function(paths, "courier")
    failed = paths.wait_for_end("order-1")
    assert (failed.status, failed.reason, failed.generation) == ("failed", "DeliveryExhausted", 0)
    assert failed.error is not None
    assert dlq in failed.error.message
    wake_the_dlq_function(paths, "courier")
    assert paths.message_count(dlq) == 1

    assert "order-1" in asya(paths, "dlq", "list")
    shown = asya(paths, "dlq", "show", "order-1", "courier")
    assert decode(shown.encode()).route.curr == "courier"
    assert "would be sent" in asya(paths, "dlq", "redrive", "courier", "--error", "exhausted", "--dry-run")
    assert asya(paths, "dlq", "redrive", "--error", "another error") == ""
    assert paths.message_count(dlq) == 1

    paths.mesh.upload("flags/courier", b"mended")
    assert "order-1  sent again in generation 1" in asya(paths, "dlq", "redrive", "--id", "order-1")
    task = succeeded(paths, "order-1", generation=1)
    assert [(each.generation, each.status, each.reason) for each in task.earlier] == [
        (0, "failed", "DeliveryExhausted")
    ]
    assert paths.envelope(task)["payload"] == {"order": "order-1", "carried": True, "booked": True}
    assert paths.envelope(task)["headers"]["x-asya-generation"] == 1
    assert paths.message_count(dlq) == 0
    assert "before" in asya(paths, "status", "order-1")


@pytest.mark.rule("12.old-task")
def test_a_failed_envelope_is_replayed_and_the_old_task_stays_as_it_was(paths: DeployedCloud) -> None:
    connection = paths.mesh.connection
    paths.mesh.upload("flags/courier", b"mended")
    connection.s3().delete_object(Bucket=connection.data.bucket, Key=connection.data.prefix + "flags/clerk")
    start(paths, "order-2", "courier", "x-checkpoint", "clerk")
    old = paths.wait_for_end("order-2")
    assert (old.status, old.error and old.error.message) == ("failed", "no such order: order-2")

    paths.mesh.upload("flags/clerk", b"mended")
    for how in ([], ["--from", "2"], ["--from-checkpoint", "1"]):
        new_id = asya(paths, "replay", "order-2", *how).strip()
        new = paths.wait_for_end(new_id)
        assert (new_id != "order-2", new.status, new.generation) == (True, "succeeded", 0)
        kept = paths.envelope(new)
        assert kept["headers"]["x-asya-replay-of"] == "order-2"
        assert kept["payload"] == {"order": "order-2", "carried": True, "booked": True}
    refused = asya(paths, "replay", "order-2", "--from", "0", fails=True)
    assert "where it failed or hop 2 or checkpoint 1" in refused
    assert paths.mesh.task("order-2") == old
