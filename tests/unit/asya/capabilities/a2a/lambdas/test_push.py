"""Push notifications: from a change of the tasks table to the client's server (`protocol §13`, `/a2a`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace as changed

from asya.capabilities.a2a.lambdas.push import build_push, build_push_feed
from asya.capabilities.a2a.push import WINDOW, shares
from asya.function.aws import clients
from asya.protocol import names
from asya.protocol.mesh_table import Gateway as GatewayLimits
from asya.protocol.mesh_table import Tool
from asya.protocol.pause import TaskPause
from asya.protocol.task import TaskRecord
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.items import put_record
from asya.testing.services.roles import role_id
from tests.doubles.gateway_functions import ALICE, MESH, Gateway, report, route_event, settings_with
from tests.doubles.notified_clients import Client, client

Json = dict[str, Any]
FEED = role_id("x-push-feed")
RECORD = TaskRecord(id="t", status="running", created_at="2026-11-20T09:00:00Z", updated_at="2026-11-20T09:00:00Z")
WATCHED = changed(RECORD, is_watched=True)
IMAGE = put_record(WATCHED, 1, 1).request("tasks")["Item"]
PAUSE = TaskPause(prompt="?", fields=(), since="2026-11-20T09:00:00Z")


@dataclass
class World:
    """The gateway, the push functions and a client."""

    gateway: Gateway
    client: Client

    def services(self, actor: str) -> Services:
        environ = self.gateway.environ | {"ASYA_ACTOR": actor}
        return Services(settings_with(environ, self.gateway.mesh))

    def start_watched(self, **config: object) -> str:
        """Starts a watched task and returns its id."""
        part = {"data": {"skill": "plain"}}
        params = {
            "message": {"messageId": "m", "role": "ROLE_USER", "parts": [part]},
            "configuration": {
                "returnImmediately": True,
                "taskPushNotificationConfig": {"url": self.client.url, **config},
            },
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
        return str(self.gateway.api(route_event("POST /a2a", ALICE, body))[1]["result"]["task"]["id"])

    def item(self, task_id: str) -> Json:
        key = {"pk": {"S": task_id}, "sk": {"S": "record"}}
        table = names.table_name("flights", "tasks")
        return dict(clients.dynamodb().get_item(TableName=table, Key=key)["Item"])

    def change(self, task_id: str, status: str, **data: object) -> Json:
        """Reports a status and returns the change of the table."""
        before = self.item(task_id)
        report(self.gateway, task_id, status, 1, data=data)
        return {"eventName": "MODIFY", "dynamodb": {"OldImage": before, "NewImage": self.item(task_id)}}

    def feed(self, *changes: Json) -> None:
        build_push_feed(self.services("x-push-feed")).process({"Records": list(changes)})

    def deliver(self, sender: str = FEED) -> list[str]:
        """Processes the queue and returns the ids of the failed messages.

        Args:
            sender: stands for that of the messages.
        """
        url = names.queue_name("flights", "x-push")
        queue = clients.sqs().get_queue_url(QueueName=url)["QueueUrl"]
        attributes: Any = ["All"]
        received = clients.sqs().receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, AttributeNames=attributes, VisibilityTimeout=0
        )
        records = [
            {
                "messageId": each["MessageId"],
                "receiptHandle": each["ReceiptHandle"],
                "body": each["Body"],
                "attributes": each["Attributes"] | {"SenderId": sender},
            }
            for each in received.get("Messages", [])
        ]
        answer = build_push(self.services("x-push")).process({"Records": records})
        return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


ATTRIBUTES = {"SentTimestamp": "1", "ApproximateReceiveCount": "1", "SenderId": FEED}


@pytest.fixture
def world(gateway: Gateway) -> Iterator[World]:
    tools = {"plain": Tool(description="", route=("publish-report",))}
    gateway.mesh = changed(MESH, tools=tools, gateway=GatewayLimits(notification_hosts=("127.0.0.1",)))
    clients.sqs().create_queue(QueueName=names.queue_name("flights", "x-push"))
    with client() as receiver:
        yield World(gateway, receiver)


@pytest.mark.rule("13.a2a.push")
def test_each_change_is_sent_with_the_task_at_that_moment(world: World) -> None:
    task_id = world.start_watched(token="t")
    running = world.change(task_id, "received", actor="publish-report")
    # SQS refuses noncharacters, because XML does.
    ended = world.change(task_id, "succeeded", result={"n": "\uffff"})
    world.feed(running, ended)
    assert world.deliver() == []
    tasks = sorted((body["task"] for _, body in world.client.notifications), key=lambda task: task["status"]["state"])
    assert [task["status"]["state"] for task in tasks] == ["TASK_STATE_COMPLETED", "TASK_STATE_WORKING"]
    assert tasks[0]["id"] == task_id
    assert tasks[0]["artifacts"][0]["parts"] == [{"data": {"n": "\uffff"}}]
    # The record does not hold the progress.
    assert "progress_percent" not in tasks[0]["metadata"]


def test_a_notification_contains_the_question_of_a_pause(world: World) -> None:
    fields = [{"name": "ok", "type": "boolean", "options": [True]}]
    world.feed(world.change(world.start_watched(), "paused", prompt="Go on?", fields=fields))
    assert world.deliver() == []
    [(_, body)] = world.client.notifications
    status = body["task"]["status"]
    assert (status["state"], status["message"]["parts"][0]) == ("TASK_STATE_INPUT_REQUIRED", {"text": "Go on?"})


@pytest.mark.rule("13.a2a.push")
def test_a_repeated_change_is_sent_twice(world: World) -> None:
    """A function that crashes after sending repeats the whole batch."""
    change = world.change(world.start_watched(), "failed", reason="Timeout")
    world.feed(change)
    world.feed(change)
    world.deliver()
    assert len(world.client.notifications) == 2


@pytest.mark.rule("13.a2a.push")
def test_a_failed_delivery_stays_on_the_queue(world: World) -> None:
    world.feed(world.change(world.start_watched(), "succeeded"))
    world.client.status = 503
    assert len(world.deliver()) == 1


@pytest.mark.rule("13.a2a.push.address")
def test_the_gateway_of_another_mesh_gets_no_notification(world: World) -> None:
    world.feed(world.change(world.start_watched(), "succeeded"))
    world.gateway.mesh = changed(world.gateway.mesh, gateway=GatewayLimits(foreign_gateways=("127.0.0.1",)))
    assert len(world.deliver()) == 1
    assert world.client.notifications == []


@pytest.mark.rule("4.entry.ends")
def test_a_receiver_gets_only_what_the_mesh_says(world: World) -> None:
    world.feed(world.change(world.start_watched(), "succeeded", result={"paid": True}))
    assert (world.deliver(sender="AIDASTRANGER"), world.client.notifications) == ([], [])


def test_a_message_that_is_no_notification_is_dropped(world: World) -> None:
    for body in ("junk", "[" * 100_000):
        record = {"messageId": "m", "receiptHandle": "r", "body": body, "attributes": ATTRIBUTES}
        assert build_push(world.services("x-push")).process({"Records": [record]})["batchItemFailures"] == []


def test_a_deleted_configuration_gets_no_notification(world: World) -> None:
    task_id = world.start_watched(id="c")
    world.feed(world.change(task_id, "succeeded"))
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "DeleteTaskPushNotificationConfig",
        "params": {"taskId": task_id, "id": "c"},
    }
    world.gateway.api(route_event("POST /a2a", ALICE, body))
    assert (world.deliver(), world.client.notifications) == ([], [])


@pytest.mark.rule("13.a2a.push")
def test_a_batch_that_cannot_be_sent_fails(world: World) -> None:
    change = world.change(world.start_watched(), "succeeded")
    queue = clients.sqs().get_queue_url(QueueName=names.queue_name("flights", "x-push"))["QueueUrl"]
    clients.sqs().delete_queue(QueueUrl=queue)
    with pytest.raises(ClientError):
        world.feed(change)


@pytest.mark.rule("13.a2a.push")
def test_an_unreadable_record_does_not_block_the_others(world: World) -> None:
    change = world.change(world.start_watched(), "succeeded")
    broken = {"dynamodb": {"NewImage": {**IMAGE, "status": {"S": "lost"}}}}
    world.feed(broken, {"dynamodb": {"OldImage": IMAGE}}, change)
    world.deliver()
    assert len(world.client.notifications) == 1


@pytest.mark.rule("13.a2a.push.cost")
def test_tasks_without_configurations_cost_nothing(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of a task without configurations does not match the filter of the event source."""
    writes: list[str] = []
    put = DynamoTaskStore.put_record

    def counted(self: Any, record: TaskRecord, *args: Any) -> Any:
        writes.append(record.status)
        return put(self, record, *args)

    monkeypatch.setattr(DynamoTaskStore, "put_record", counted)
    report(gateway, "plain", "received", 1)
    report(gateway, "plain", "succeeded", 2)
    assert writes == ["running", "succeeded"]
    key = {"pk": {"S": "plain"}, "sk": {"S": "record"}}
    item = clients.dynamodb().get_item(TableName=names.table_name("flights", "tasks"), Key=key)["Item"]
    assert "is_watched" not in item


@pytest.mark.rule("13.a2a.push.shares")
def test_13_a2a_push_shares_a_notification_beyond_the_share_stays_on_the_queue(world: World) -> None:
    task_id = world.start_watched()
    world.feed(world.change(task_id, "received", actor="publish-report"))
    now = datetime.now(UTC)
    table = names.table_name("flights", "tasks")
    # The clock may reach the next window before the notification.
    for moment in (now, now + timedelta(seconds=WINDOW)):
        host, _ = shares("127.0.0.1", "AIDAALICE", moment)
        used: Json = {"pk": {"S": host.pk}, "sk": {"S": host.sk}, "seconds_used": {"N": "119"}}
        clients.dynamodb().put_item(TableName=table, Item=used)
    assert len(world.deliver()) == 1
    assert world.client.notifications == []
    url = clients.sqs().get_queue_url(QueueName=names.queue_name("flights", "x-push"))["QueueUrl"]
    waiting = clients.sqs().get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessagesNotVisible"])
    assert waiting["Attributes"]["ApproximateNumberOfMessagesNotVisible"] == "1"
