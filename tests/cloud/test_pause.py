"""Tests pauses (protocol §11) on the deployed mesh, with IAM enforced: notification, resume and cancellation."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from asya.client.errors import ConflictError
from asya.protocol import names
from asya.protocol.keys import pause_key
from asya.protocol.times import format_time, parse_time
from asya_cli.errors import CommandError
from asya_cli.main import app
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.environment import now
from tests.cloud.paths_mesh import NewEnvelope, notes, send, wait_for_final_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.tasks.view import TaskView

pytestmark = pytest.mark.cloud

YES = b'{"approved": true}'


@pytest.fixture(scope="module")
def notifications(paths: DeployedCloud) -> Iterator[str]:
    """The URL of a queue that is subscribed to the pause topic of the mesh."""
    sqs, sns = paths.client("sqs"), paths.client("sns")
    url = sqs.create_queue(QueueName="editors")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    topics = [each["TopicArn"] for each in sns.list_topics()["Topics"]]
    (topic,) = [each for each in topics if each.endswith(f":{names.resource_name('paths', 'pauses')}")]
    allow = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage"}
    statement = allow | {"Resource": arn, "Condition": {"ArnEquals": {"aws:SourceArn": topic}}}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    subscription = sns.subscribe(
        TopicArn=topic,
        Protocol="sqs",
        Endpoint=arn,
        Attributes={
            "RawMessageDelivery": "true",
            "FilterPolicy": json.dumps({"actor": ["approve"]}),
            "FilterPolicyScope": "MessageBody",
        },
        ReturnSubscriptionArn=True,
    )["SubscriptionArn"]
    yield url
    sns.unsubscribe(SubscriptionArn=subscription)
    sqs.delete_queue(QueueUrl=url)


def asya(cloud: DeployedCloud, *arguments: str) -> Any:
    """Runs the command on this cloud."""
    return CliRunner().invoke(app, [*arguments, "--state", str(cloud.state)])


def wait_for_pause(cloud: DeployedCloud, envelope_id: str, actor: str = "approve") -> TaskView:
    """Waits until the task is paused at this actor, and returns it."""

    def poll() -> TaskView | None:
        task = cloud.task(envelope_id)
        return task if task is not None and (task.status, task.actor) == ("paused", actor) else None

    return until(poll, f"{envelope_id} to pause at {actor}")


def paused_envelope(cloud: DeployedCloud, envelope_id: str, epoch: int) -> Any:
    """Reads the stored envelope of a pause."""
    bucket = cloud.mesh.connection.data.bucket
    response = cloud.client("s3").get_object(Bucket=bucket, Key=pause_key(envelope_id, 0, epoch))
    return json.loads(response["Body"].read())


def wait_for_empty_queue(cloud: DeployedCloud, actor: str) -> None:
    """Waits until an actor's queue is empty."""
    queue = names.queue_name("paths", actor)
    until(lambda: True if cloud.message_count(queue) == 0 else None, f"{queue} to be empty")


@pytest.mark.rule("2.deadline.resume", "11.pause.notify", "11.pause.shown-to")
def test_a_task_pauses_with_a_notification_and_resumes_with_valid_answers(
    paths: DeployedCloud, notifications: str
) -> None:
    deadline = now() + timedelta(seconds=300)
    status = {"phase": "pending", "deadline_at": format_time(deadline)}
    task_id = send(paths, NewEnvelope(["once", "approve", "helper"], {"report": {"pages": 3}}, status=status))
    task = wait_for_pause(paths, task_id)
    assert task.pause is not None
    assert (task.pause.prompt, [field.name for field in task.pause.fields]) == (
        *("Publish it?", ["approved", "title", "channel"]),
    )

    message = until(lambda: receive(paths, notifications), "the notification")
    assert (message["id"], message["actor"], message["position"]) == (task_id, "approve", 1)
    assert message["message"] == f"Task {task_id} of the mesh paths is paused at approve: Publish it?"
    status_text = asya(paths, "status", task_id).stdout
    assert "Publish it?" in status_text
    assert '/report     {"pages": 3}' in status_text
    assert "shown" not in message
    assert 'one of "web", "mail" (default "web")' in status_text

    refused = asya(paths, "resume", task_id, "--input", '{"approved": "yes", "channel": "radio", "colour": 1}')
    assert isinstance(refused.exception, CommandError)
    assert all(f"{name} " in refused.exception.problem for name in ("approved", "channel", "colour"))
    assert wait_for_pause(paths, task_id).pause == task.pause

    resumed_after = now()
    assert asya(paths, "resume", task_id, "--input", YES.decode()).exit_code == 0
    resumed_by = now()
    again = asya(paths, "resume", task_id, "--input", YES.decode())
    assert isinstance(again.exception, ConflictError)
    assert "paused" in again.exception.problem
    end = wait_for_final_state(paths, task_id)
    assert end.task.status == "succeeded"
    assert end.payload == {"report": {"pages": 3, "title": "Delays"}, "approved": True, "channel": "web", "steps": 1}
    assert end.envelope["route"]["prev"] == ["once", "approve", "x-resume", "helper"]
    assert not [name for name in end.envelope.get("headers", {}) if "pause" in name or "resume" in name]

    remaining = deadline - parse_time(task.pause.since)
    new_deadline = parse_time(end.envelope["status"]["deadline_at"])
    assert deadline < new_deadline
    assert resumed_after <= new_deadline - remaining <= resumed_by
    assert end.task.deadline_at == end.envelope["status"]["deadline_at"]


def receive(cloud: DeployedCloud, url: str) -> Any:
    """Receives the next notification; None if there is none within a second."""
    response = cloud.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=1, WaitTimeSeconds=1)
    return next((json.loads(each["Body"]) for each in response.get("Messages", [])), None)


@pytest.mark.rule("11.pause.epoch")
def test_two_pauses_in_one_route(paths: DeployedCloud) -> None:
    task_id = send(paths, NewEnvelope(["approve", "x-pause", "step"], {}))
    wait_for_pause(paths, task_id, "approve")
    first = paused_envelope(paths, task_id, 0)
    paths.mesh.resume(task_id, YES)
    second = wait_for_pause(paths, task_id, "x-pause")
    assert second.pause is not None
    assert (second.pause.prompt, second.pause.fields) == ("Task paused", ())

    paths.send_as_mesh(
        "approve", json.dumps({**first, "route": {"prev": [], "curr": "approve", "next": ["x-pause", "step"]}})
    )
    wait_for_empty_queue(paths, "approve")
    assert wait_for_pause(paths, task_id, "x-pause").pause == second.pause
    paths.mesh.resume(task_id, b'{"remark": {"by": "me"}}')
    end = wait_for_final_state(paths, task_id)
    assert end.task.status == "succeeded"
    assert end.payload == {
        "approved": True,
        "report": {"title": "Delays"},
        "channel": "web",
        "remark": {"by": "me"},
        "steps": 1,
    }
    assert end.envelope["route"]["prev"] == ["approve", "x-resume", "x-pause", "x-resume", "step"]


@pytest.mark.rule("11.pause.redelivered")
def test_redelivered_messages_neither_pause_nor_resume_again(paths: DeployedCloud) -> None:
    message = NewEnvelope(["approve", "stubborn"], {"until": 1})
    task_id = send(paths, message)
    before = wait_for_pause(paths, task_id)
    send(paths, message)
    wait_for_empty_queue(paths, "approve")
    assert wait_for_pause(paths, task_id).pause == before.pause

    envelope = paused_envelope(paths, task_id, 0)
    paths.mesh.resume(task_id, YES)
    assert wait_for_final_state(paths, task_id).task.status == "succeeded"
    assert paused_envelope(paths, task_id, 0)["resumed"] is True
    envelope["headers"] |= {"x-asya-resume-input": {"approved": True}}
    paths.send_as_mesh("x-resume", json.dumps(envelope))
    send(paths, message)
    wait_for_empty_queue(paths, "x-resume")
    wait_for_empty_queue(paths, "approve")
    wait_for_empty_queue(paths, "stubborn")
    assert [note.name for note in notes(paths, task_id)] == ["attempt-001"]
    assert paths.wait_for_end(task_id).status == "succeeded"


@pytest.mark.rule("11.pause.cancel")
def test_a_paused_task_is_canceled(paths: DeployedCloud) -> None:
    task_id = send(paths, NewEnvelope(["once", "approve", "helper"], {"text": "draft"}))
    wait_for_pause(paths, task_id)
    paths.mesh.cancel(task_id)
    task = paths.wait_for_end(task_id)
    assert (task.status, task.pause) == ("canceled", None)
    stored = until(lambda: paths.mesh.stored(task_id), "the envelope under canceled/")
    assert stored.uri.endswith(f"canceled/{task_id}.json")
    envelope = json.loads(stored.body)
    assert (envelope["status"]["phase"], envelope["payload"]) == ("canceled", {"text": "draft"})
    with pytest.raises(ConflictError):
        paths.mesh.resume(task_id, YES)


@pytest.mark.rule("11.pause.stealth")
def test_a_stealth_envelope_cannot_pause(paths: DeployedCloud) -> None:
    task_id = str(uuid4())
    headers = {"x-asya-mesh-status": "off"}
    send(paths, NewEnvelope(["approve", "step"], {}, headers=headers, envelope_id=task_id))
    bucket, prefix = paths.mesh.connection.results.bucket, paths.mesh.connection.results.prefix
    sump = f"{prefix}sump/{task_id}.json"

    def poll() -> Any:
        objects = paths.client("s3").list_objects_v2(Bucket=bucket, Prefix=sump).get("Contents")
        return objects and json.loads(paths.client("s3").get_object(Bucket=bucket, Key=sump)["Body"].read())

    envelope = until(poll, "the copy of x-sump")
    assert "cannot pause" in envelope["status"]["error"]["message"]
