"""Webhooks on the local cloud (protocol §16.webhooks): a signed call from outside starts one task, and nobody else does."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import boto3
import pytest
import urllib3
from botocore.config import Config
from botocore.exceptions import ClientError

from asya.function.hop import PROBLEM
from asya.protocol import names
from asya.protocol.mesh_table import BODY_LIMIT
from asya.protocol.triggers import Webhook
from asya.tasks.reporting.aws.gateway_client import address_of
from asya.testing.webhooks import signed_headers
from asya_local.account import REGION
from tests.cloud.conftest import SECRETS
from tests.cloud.deployed_cloud import until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya.tasks.view import TaskView
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

GITHUB = Webhook(secret="hooks/github", signature="github")
STRIPE = Webhook(secret="hooks/stripe", signature="stripe")
PUSH = json.dumps({"ref": "refs/heads/main", "who": "Zoë"}, ensure_ascii=False).encode()


def post(cloud: DeployedCloud, name: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, Any]:
    """Call a webhook as a system without keys of AWS."""
    url = address_of(f"{cloud.mesh.connection.gateway_url}/hooks/{name}")
    given = {"content-type": "application/json", **headers}
    with urllib3.PoolManager() as pool:
        response = pool.request("POST", url, body=body, headers=given, timeout=60.0, retries=False)
        return response.status, json.loads(response.data)


def signed(webhook: Webhook, body: bytes, age: float = 0.0) -> Mapping[str, str]:
    key = SECRETS[webhook.secret].encode()
    return signed_headers(webhook, key, body, datetime.now(UTC) - timedelta(seconds=age))


def wait_for_success(cloud: DeployedCloud, task_id: str) -> TaskView:
    """The start waits on a queue, so the task may be unknown at first."""

    def poll() -> TaskView | None:
        task = cloud.task(task_id)
        return task if task is not None and task.status == "succeeded" else None

    return until(poll, f"the success of {task_id}")


@pytest.mark.rule("16.webhooks.signature", "16.webhooks.once", "16.start", "13.started-by")
def test_16_a_signed_webhook_starts_one_task(gateway: DeployedCloud) -> None:
    headers = {**signed(GITHUB, PUSH), "X-GitHub-Event": "push"}
    status, content = post(gateway, "pushed", PUSH, headers)
    assert status == 202
    task = wait_for_success(gateway, content["id"])
    assert post(gateway, "pushed", PUSH, headers) == (200, {**content, "repeated": True})
    assert gateway.envelope(task)["payload"] == {"text": "push"}
    assert (task.owner, task.tool) == ("trigger:pushed", "say")
    assert (task.started_by.kind, task.started_by.name) == ("trigger", "pushed")


@pytest.mark.rule("16.webhooks.age", "16.webhooks.once", "16.webhooks.payload")
def test_16_a_webhook_with_a_time_is_refused_when_it_is_old(gateway: DeployedCloud) -> None:
    body = b'{"type": "charge.succeeded", "data": {"amount": 5}}'
    assert post(gateway, "paid", body, signed(STRIPE, body, age=330))[0] == 401
    assert post(gateway, "paid", body, signed(STRIPE, body, age=-330))[0] == 401
    status, content = post(gateway, "paid", body, signed(STRIPE, body, age=60))
    assert status == 202
    assert gateway.envelope(wait_for_success(gateway, content["id"]))["payload"] == {"amount": 5}
    again = post(gateway, "paid", body, signed(STRIPE, body))
    assert again == (200, {**content, "repeated": True})


@pytest.mark.rule("16.webhooks.large", "16.webhooks.id")
def test_16_a_large_webhook_travels_through_s3_and_starts_one_task(gateway: DeployedCloud) -> None:
    """The functions write and read the stored body with their own permissions. The id names the webhook, not its bytes."""

    def body(pending: int) -> bytes:
        event = {"id": "evt_large", "pending_webhooks": pending, "data": {"amount": 6, "note": "x" * 2 * 1024 * 1024}}
        return json.dumps(event).encode()

    status, content = post(gateway, "paid", body(2), signed(STRIPE, body(2)))
    assert status == 202
    payload = gateway.envelope(wait_for_success(gateway, content["id"]))["payload"]
    assert (payload["amount"], len(payload["note"])) == (6, 2 * 1024 * 1024)
    assert post(gateway, "paid", body(1), signed(STRIPE, body(1))) == (200, {**content, "repeated": True})


@pytest.mark.rule("16.webhooks.signature", "16.webhooks.unknown", "16.webhooks.limits")
def test_16_everything_else_is_refused(gateway: DeployedCloud) -> None:
    good = signed(GITHUB, PUSH)
    wrong = {"X-Hub-Signature-256": f"sha256={'0' * 64}"}
    large = b" " * (BODY_LIMIT + 1)
    answers = [
        post(gateway, "pushed", PUSH, {}),
        post(gateway, "pushed", PUSH, wrong),
        post(gateway, "pushed", PUSH[:-1], good),
        post(gateway, "paid", PUSH, good),
        post(gateway, "nobody", PUSH, good),
        post(gateway, "pushed", large, signed(GITHUB, large)),
        post(gateway, "pushed", b"{", signed(GITHUB, b"{")),
    ]
    assert [status for status, _ in answers] == [401, 401, 401, 401, 404, 413, 400]
    assert len({json.dumps(content) for _, content in answers[:4]}) == 1


@pytest.mark.rule("16.senders.forms", "16.start.route")
def test_16_a_trigger_starts_its_own_route_and_nothing_else(gateway: DeployedCloud) -> None:
    """`x-hooks` tells of webhooks alone, and `x-triggers` sends to the first actors of triggers alone, whatever they are told."""
    hooks, triggers = (sqs_of(gateway, function) for function in (names.WEBHOOKS, names.TRIGGERS))
    forged = json.dumps({"trigger": "paid", "event": {"id": str(uuid4())}})
    hooks.send_message(QueueUrl=queue_url(gateway, names.TRIGGERS), MessageBody=forged)
    letters = queue_url(gateway, f"{names.TRIGGERS}-dlq")
    reader = gateway.client("sqs")

    def letter() -> Any:
        found = reader.receive_message(
            QueueUrl=letters, MessageAttributeNames=["All"], WaitTimeSeconds=5, VisibilityTimeout=0
        ).get("Messages", [])
        return next((each for each in found if each["Body"] == forged), None)

    kept = until(letter, "the forged message to be a dead letter")
    reader.delete_message(QueueUrl=letters, ReceiptHandle=kept["ReceiptHandle"])
    assert kept["MessageAttributes"][PROBLEM]["StringValue"] == "x-hooks may not tell about objects and events"
    for client, actor in ((hooks, "echo"), (triggers, "send"), (triggers, names.SINK)):
        with pytest.raises(ClientError, match="AccessDenied"):
            client.send_message(QueueUrl=queue_url(gateway, actor), MessageBody="{}")


def sqs_of(cloud: DeployedCloud, function: str) -> Any:
    """A client of SQS with the role of a function, which trusts the deployer for the moment of the call."""
    iam, name = cloud.client("iam"), names.role_name("gateway", function, REGION)
    role = iam.get_role(RoleName=name)["Role"]
    trust = role["AssumeRolePolicyDocument"]
    deployer = {
        "Effect": "Allow",
        "Principal": {"AWS": cloud.client("sts").get_caller_identity()["Arn"]},
        "Action": "sts:AssumeRole",
    }
    wider = {**trust, "Statement": [*trust["Statement"], deployer]}
    iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(wider))
    try:
        keys = cloud.client("sts").assume_role(RoleArn=role["Arn"], RoleSessionName="test")["Credentials"]
    finally:
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(trust))
    session = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], region_name=REGION)
    return session.client("sqs", endpoint_url=str(cloud.mesh.connection.endpoint_url), config=Config(proxies={}))


def queue_url(cloud: DeployedCloud, queue: str) -> str:
    """The URL of a queue of the mesh."""
    return str(cloud.client("sqs").get_queue_url(QueueName=names.queue_name("gateway", queue))["QueueUrl"])
