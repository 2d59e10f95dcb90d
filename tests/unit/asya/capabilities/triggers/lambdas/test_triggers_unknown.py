"""Messages of triggers that the function does not know, because a deployment has not reached it yet."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asya.capabilities.triggers.lambdas.triggers import TriggerQueue
from asya.capabilities.triggers.sources.service_messages import LAST_RECEIVE
from asya.function.aws.telemetry import Telemetry
from asya.function.lambdas.batch import Record
from asya.function.nack import OutdatedError, nack_seconds
from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import MeshTable
from asya.protocol.triggers import Trigger, Webhook
from asya.testing import Mesh
from asya.testing.services.roles import role_id

MESH = """
namespace: hooks
code: handlers
actors:
  echo: {handler: echo.echo}
triggers:
  hook:
    route: [echo]
    webhook: {secret: hooks/github, signature: github}
"""
DELIVERY = {"key": "webhook a", "body": "{}", "received_at": "2026-11-25T12:00:00.000000Z"}
AT_TWO, AT_THREE = "2026-11-25T02:00:00.000000Z", "2026-11-25T03:00:00.000000Z"
TRIGGERS = {
    "hook": Trigger(route=("echo",), webhook=Webhook(secret="hooks/github", signature="github")),
    "nightly": Trigger(route=("echo",), cron="0 2 * * *"),
}


@pytest.fixture
def mesh(tmp_path: Path) -> Mesh:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "echo.py").write_text("def echo(payload):\n    return payload\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    return Mesh(tmp_path / "mesh.yaml")


def send(mesh: Mesh, trigger: str, sender: str) -> None:
    body = json.dumps({"trigger": trigger, "webhook": DELIVERY})
    mesh.cloud.queues.send(names.queue_name("hooks", names.TRIGGERS), body, sender=None, by=sender)


class Worker:
    """Handles the records of a batch, and keeps the errors of those that stay on the queue."""

    def __init__(self) -> None:
        self.kept: list[Exception] = []

    def process(self, items: list[Record], handle: Callable[[Record], Any]) -> None:
        for record in items:
            try:
                handle(record)
            except (OutdatedError, ApiError) as error:
                self.kept.append(error)


@pytest.mark.rule("16.failures.unknown", "16.failures")
@pytest.mark.parametrize(
    ("sender", "message", "problem"),
    [
        (names.WEBHOOKS, {"trigger": "new", "webhook": DELIVERY}, "the mesh has no trigger 'new'"),
        (names.WEBHOOKS, {"trigger": "nightly", "webhook": DELIVERY}, "the trigger 'nightly' has no webhook"),
        (names.CLOCK, {"trigger": "new", "slot": AT_TWO}, "the mesh has no trigger 'new'"),
        (names.CLOCK, {"trigger": "hook", "slot": AT_TWO}, "the trigger 'hook' has no schedule"),
        (names.CLOCK, {"trigger": "nightly", "slot": AT_THREE}, f"{AT_THREE} is no slot of '0 2 * * *' in UTC"),
    ],
)
def test_16_a_message_that_fits_no_trigger_waits_for_a_deployment(sender: str, message: object, problem: str) -> None:
    """After twenty minutes the deployment is over, and the message is a dead letter."""
    settings = SimpleNamespace(
        table=MeshTable(namespace="hooks", actors={}, triggers=TRIGGERS),
        data_uri="s3://b/data/",
        results_uri="s3://b/results/",
    )
    admission = SimpleNamespace(function_of=lambda _: sender)
    services: Any = SimpleNamespace(settings=settings, telemetry=Telemetry("hooks", "test"), admission=admission)
    worker, failed = Worker(), list[str]()
    letters: Any = SimpleNamespace(keep=lambda _, problem: failed.append(problem))
    lanes: Any = SimpleNamespace(take=lambda _: False)
    starts: Any = SimpleNamespace()
    unused: Any = SimpleNamespace()
    bodies: Any = SimpleNamespace(restored=lambda body: body)
    queue = TriggerQueue(services, worker, starts, lanes, letters, unused, unused, unused, bodies)  # type: ignore[arg-type]
    body = json.dumps(message)
    for count in range(1, LAST_RECEIVE + 1):
        attributes = {"SentTimestamp": "0", "ApproximateReceiveCount": str(count), "SenderId": role_id(sender)}
        record = {"body": body, "messageId": "m", "receiptHandle": "r", "attributes": attributes}
        queue.process({"Records": [record]})
        assert (len(worker.kept), len(failed)) == ((count, 0) if count < LAST_RECEIVE else (LAST_RECEIVE - 1, 1))
    assert failed == [problem]
    assert sum(nack_seconds(count, worker.kept[0]) for count in range(1, LAST_RECEIVE)) >= 19 * 60


@pytest.mark.rule("16.lane.repair", "16.ends.lost")
@pytest.mark.parametrize(
    ("message", "is_given_up"),
    [
        ({"lane": "a", "trigger": "nightly"}, True),
        ({"ended": "task", "kind": "trigger", "name": "nightly"}, True),
        ({"ended": "task", "kind": "backfill", "name": "b"}, True),
        ({"backfill": "b"}, True),
        ({"start": {"id": "task", "at": AT_TWO}, "lane": "a", "trigger": "nightly"}, False),
    ],
)
def test_16_a_message_that_says_where_to_look_is_no_dead_letter(message: object, is_given_up: bool) -> None:
    """The sweep sends one each minute. That of a start is the only one."""

    def refuse(*_: object) -> None:
        raise ApiError(503, "not_sent", "the queue of the actor refuses messages")

    services: Any = SimpleNamespace(
        settings=SimpleNamespace(
            table=MeshTable(namespace="hooks", actors={}), data_uri="s3://b/", results_uri="s3://b/"
        ),
        telemetry=Telemetry("hooks", "test"),
        admission=SimpleNamespace(function_of=lambda _: names.GATEWAY_API),
    )
    worker = Worker()
    lanes, backfills, unused = (
        SimpleNamespace(take=refuse),
        SimpleNamespace(advance=refuse),
        SimpleNamespace(start=refuse),
    )
    queue = TriggerQueue(services, worker, unused, lanes, unused, unused, backfills, unused, unused)  # type: ignore[arg-type]
    for count in range(1, 7):
        attributes = {"SentTimestamp": "0", "ApproximateReceiveCount": str(count), "SenderId": "AROAX:x"}
        record = {"body": json.dumps(message), "messageId": "m", "receiptHandle": "r", "attributes": attributes}
        queue.process({"Records": [record]})
    assert len(worker.kept) == (4 if is_given_up else 6)


@pytest.mark.rule("16.webhooks.message", "16.messages")
def test_16_a_stranger_cannot_send_a_webhook_to_the_queue(mesh: Mesh) -> None:
    """The signature was checked by the function that sends it, so only roles of the mesh may."""
    send(mesh, "hook", "AIDASTRANGER")
    mesh.travel(minutes=1)
    assert mesh.runs() == ()
    assert len(mesh.dead_letters) == 1
    send(mesh, "hook", role_id(names.WEBHOOKS))
    mesh.travel(minutes=1)
    [run] = mesh.runs()
    assert run.result == {}
