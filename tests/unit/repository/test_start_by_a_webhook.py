"""The command line of the page about webhooks is run as it stands there, against the gateway of `asya dev`."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from asya.capabilities.triggers.aws.webhook_keys import WebhookKeys
from asya.capabilities.triggers.aws.webhook_queue import WebhookMemory, WebhookQueue
from asya.capabilities.triggers.http_calls import TAKE_WEBHOOK
from asya.function.aws import table
from asya.function.lambdas.environment import REAL
from asya.gateway.http.router import HttpRoute, answer
from asya.gateway.routes.webhooks import WebhookRoutes
from asya.protocol import ids, names
from asya.tasks.aws.items import record_key
from asya.testing.dynamo.tables import MemoryDynamo, Table
from asya_infra.mesh_file import load_mesh
from asya_infra.mesh_file.table import to_table
from asya_local.account import AccessKey
from asya_local.dev.gateway import Gateway
from asya_local.dev.resources import Operator
from asya_local.dev.telemetry import DevTelemetry
from tests.doubles.snippets import write_project
from tests.paths import PROJECT

PAGE = "start-by-a-webhook.md"
KEY = "a-key-of-the-page-7d21"
BLOCK = re.compile(r"^```sh\n(# HOOK_URL .*?)^```", re.MULTILINE | re.DOTALL)
OPERATOR = Operator(AccessKey("AKIA0000000000000001", "secret"), "arn:aws:iam::000000000000:user/operator", "AIDA")


@dataclass
class Queue:
    """The client of SQS, which keeps the messages; the task of each one exists at once."""

    messages: list[Any]
    tables: Any

    def send_message(self, *, MessageBody: str, **_: str) -> None:  # noqa: N803 - as in boto3
        """See SQS."""
        message = json.loads(MessageBody)
        self.messages.append(message)
        task = record_key(ids.occurrence_id(message["trigger"], message["webhook"]["key"]))
        table.Table(self.tables, "tasks").write(table.put(task, {"expires_at": 99999999999}))


@pytest.fixture
def queue() -> Queue:
    return Queue([], MemoryDynamo({"tasks": Table()}))


@pytest.fixture
def gateway(tmp_path: Path, queue: Queue) -> Iterator[Gateway]:
    write_project(PAGE, tmp_path)
    telemetry: Any = DevTelemetry("gateway", lambda *_: None)
    sqs: Any = queue
    s3: Any = None
    webhooks = WebhookRoutes(
        mesh=to_table(load_mesh(tmp_path / "mesh.yaml")),
        keys=WebhookKeys({"hooks/github": KEY, "hooks/stripe": f"another-{KEY}"}.__getitem__, REAL, lambda _: None),
        queue=WebhookQueue(sqs, "x-triggers", s3, "bucket"),
        memory=WebhookMemory(queue.tables, "tasks"),
        telemetry=telemetry,
    )
    server = Gateway(0, lambda *_: None)
    routes = [HttpRoute(TAKE_WEBHOOK, webhooks.take)]
    functions = {names.WEBHOOKS: lambda event: answer(event, routes, REAL.now(), telemetry.log)}
    server.serve([TAKE_WEBHOOK], functions, OPERATOR)
    yield server
    server.end()


def run(url: str, key: str) -> str:
    """Run the block of the page; returns what it prints."""
    [block] = BLOCK.findall((PROJECT / "docs" / "how-to" / PAGE).read_text())
    environment = {"PATH": os.environ["PATH"], "HOOK_URL": url, "KEY": key}
    done = subprocess.run(
        ["bash", "-euc", block], capture_output=True, text=True, env=environment, check=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("openssl")),
    reason="the page needs curl and openssl, which most machines have",
)
@pytest.mark.rule("16.webhooks.signature", "16.webhooks.once")
def test_the_call_of_the_page_is_taken_once(gateway: Gateway, queue: Queue) -> None:
    url = f"{gateway.url}/hooks/pushed"
    first, second = run(url, KEY), run(url, KEY)
    assert first.endswith("} 202\n")
    assert second.endswith('"repeated":true} 200\n')
    [message] = queue.messages
    assert (message["trigger"], message["webhook"]["event"]) == ("pushed", "push")
    assert json.loads(message["webhook"]["body"]) == {"ref": "refs/heads/main"}
    assert run(url, "another-key-1234567").endswith(" 401\n")
    assert run(f"{gateway.url}/hooks/pusht", KEY).endswith(" 404\n")
