"""Webhooks on the local cloud (protocol §16.webhooks): a signed call from outside starts one task, and nobody else does."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import urllib3

from asya.protocol.triggers import Webhook
from asya.reporting.aws.gateway_client import address_of
from asya.testing.webhooks import signed_headers
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
    assert post(gateway, "pushed", PUSH, headers) == (200, {**content, "repeated": True})
    task = wait_for_success(gateway, content["id"])
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
    again = post(gateway, "paid", body, signed(STRIPE, body))
    assert again == (200, {**content, "repeated": True})
    assert gateway.envelope(wait_for_success(gateway, content["id"]))["payload"] == {"amount": 5}


@pytest.mark.rule("16.webhooks.signature", "16.webhooks.unknown", "16.webhooks.limits")
def test_16_everything_else_is_refused(gateway: DeployedCloud) -> None:
    good = signed(GITHUB, PUSH)
    wrong = {"X-Hub-Signature-256": f"sha256={'0' * 64}"}
    large = b" " * (256 * 1024 + 1)
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
