"""What failed runs again: a dead letter is redriven, a failed envelope replayed (`protocol §12`). IAM is enforced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from asya.protocol import names
from asya.protocol.codec import decode
from asya_cli.connection import read_local
from asya_cli.main import app
from asya_cli.mesh_client import MeshClient
from infra.local.accounts import aws_client
from infra.local.cloud import UpOptions, down, up
from infra.local.emr.settings import WorkerSettings
from infra.local.folder import StateFolder
from infra.local.keys import read_keys
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.redrive_mesh import HANDLERS, MESH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.protocol.task_view import TaskView

pytestmark = pytest.mark.cloud

ALARM = json.loads((Path(__file__).parents[2] / "events" / "lambda" / "dead-letters-alarm.json").read_text())


@pytest.fixture(scope="module")
def repeat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedCloud]:
    """The mesh with the mistakes."""
    folder = tmp_path_factory.mktemp("redrive")
    (folder / "mesh.yaml").write_text(MESH)
    (folder / "handlers").mkdir()
    (folder / "handlers" / "shop.py").write_text(HANDLERS)
    state = folder / "state"
    try:
        up(folder / "mesh.yaml", state, UpOptions(auth=True, workers=WorkerSettings(slots=1, spares=0)))
        yield DeployedCloud(MeshClient(read_local(state)), state)
    finally:
        down(state)


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


def client(cloud: DeployedCloud, service: str) -> Any:
    """With the deployer's key, for what the operator may not do."""
    key = read_keys(StateFolder.at(cloud.state).keys)["deployer"]
    return aws_client(service, str(cloud.mesh.connection.endpoint_url), key)


def succeeded(cloud: DeployedCloud, envelope_id: str, generation: int) -> TaskView:
    """The task, once it has succeeded in this generation."""

    def look() -> TaskView | None:
        task = cloud.mesh.task(envelope_id)
        return task if task and (task.status, task.generation) == ("succeeded", generation) else None

    return until(look, f"{envelope_id} to succeed in generation {generation}")


def wake_the_dlq_function(cloud: DeployedCloud, actor: str) -> None:
    """As the alarm of a dead-letter queue does on AWS: the local cloud's alarms see no queue."""
    namespace = cloud.mesh.connection.namespace
    event = ALARM | {"detail": ALARM["detail"] | {"alarmName": names.dlq_name(namespace, actor)}}
    name = names.function_name(namespace, names.DLQ)
    answer = client(cloud, "lambda").invoke(FunctionName=name, Payload=json.dumps(event).encode())
    assert "FunctionError" not in answer, answer["Payload"].read()


def stored(cloud: DeployedCloud, task: TaskView) -> dict[str, Any]:
    assert task.result_uri is not None
    body: dict[str, Any] = json.loads(cloud.mesh.fetch(task.result_uri) or b"{}")
    return body


def test_a_dead_letter_is_reported_left_and_redriven_once_the_cause_is_mended(repeat: DeployedCloud) -> None:
    dlq = names.dlq_name("repeat", "courier")
    start(repeat, "order-1", "courier", "x-checkpoint", "clerk")
    repeat.mesh.upload("flags/clerk", b"mended")
    until(lambda: repeat.messages(dlq) or None, "the message to be given up")

    wake_the_dlq_function(repeat, "courier")
    failed = repeat.ended("order-1")
    assert (failed.status, failed.reason, failed.generation) == ("failed", "DeliveryExhausted", 0)
    assert failed.error is not None
    assert dlq in failed.error.message
    wake_the_dlq_function(repeat, "courier")
    assert repeat.messages(dlq) == 1

    assert "order-1" in asya(repeat, "dlq", "list")
    shown = asya(repeat, "dlq", "show", "order-1", "courier")
    assert decode(shown.encode()).route.curr == "courier"
    assert "would be sent" in asya(repeat, "dlq", "redrive", "courier", "--error", "exhausted", "--dry-run")
    assert asya(repeat, "dlq", "redrive", "--error", "another error") == ""
    assert repeat.messages(dlq) == 1

    repeat.mesh.upload("flags/courier", b"mended")
    assert "order-1  sent again in generation 1" in asya(repeat, "dlq", "redrive", "--id", "order-1")
    task = succeeded(repeat, "order-1", generation=1)
    assert [(each.generation, each.status, each.reason) for each in task.earlier] == [
        (0, "failed", "DeliveryExhausted")
    ]
    assert stored(repeat, task)["payload"] == {"order": "order-1", "carried": True, "booked": True}
    assert stored(repeat, task)["headers"]["x-asya-generation"] == 1
    assert repeat.messages(dlq) == 0
    assert "before" in asya(repeat, "status", "order-1")


def test_a_failed_envelope_is_replayed_and_the_old_task_stays_as_it_was(repeat: DeployedCloud) -> None:
    connection = repeat.mesh.connection
    repeat.mesh.upload("flags/courier", b"mended")
    connection.s3().delete_object(Bucket=connection.data.bucket, Key=connection.data.prefix + "flags/clerk")
    start(repeat, "order-2", "courier", "x-checkpoint", "clerk")
    old = repeat.ended("order-2")
    assert (old.status, old.error and old.error.message) == ("failed", "no such order: order-2")

    repeat.mesh.upload("flags/clerk", b"mended")
    for how in ([], ["--from", "2"], ["--from-checkpoint", "1"]):
        new_id = asya(repeat, "replay", "order-2", *how).strip()
        new = repeat.ended(new_id)
        assert (new_id != "order-2", new.status, new.generation) == (True, "succeeded", 0)
        kept = stored(repeat, new)
        assert kept["headers"]["x-asya-replay-of"] == "order-2"
        assert kept["payload"] == {"order": "order-2", "carried": True, "booked": True}
    refused = asya(repeat, "replay", "order-2", "--from", "0", fails=True)
    assert "where it failed or hop 2 or checkpoint 1" in refused
    assert repeat.mesh.task("order-2") == old


def test_what_succeeded_is_not_redriven_unless_forced(repeat: DeployedCloud) -> None:
    repeat.mesh.upload("flags/clerk", b"mended")
    start(repeat, "order-3", "clerk")
    assert repeat.ended("order-3").status == "succeeded"
    body = {"id": "order-3", "route": {"prev": [], "curr": "clerk", "next": []}, "payload": {"order": "again"}}
    dlq = names.dlq_name("repeat", "clerk")
    sqs = client(repeat, "sqs")
    sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName=dlq)["QueueUrl"], MessageBody=json.dumps(body))
    assert "order-3  refused: task 'order-3' succeeded" in asya(repeat, "dlq", "redrive", "clerk", fails=True)
    assert repeat.messages(dlq) == 1
    assert "sent again in generation 1" in asya(repeat, "dlq", "redrive", "clerk", "--force")
    task = succeeded(repeat, "order-3", generation=1)
    assert stored(repeat, task)["payload"] == {"order": "again", "booked": True}
