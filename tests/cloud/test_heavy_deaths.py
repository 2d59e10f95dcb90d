"""protocol §10 on the deployed mesh, IAM enforced: a job that kills its process, and a run nobody wants any more."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from asya.protocol import names
from asya_cli.connection import read_local
from asya_cli.mesh_client import MeshClient
from asya_cli.run import show
from infra.local.cloud import UpOptions, down, up
from infra.local.emr.settings import WorkerSettings
from tests.cloud.deployed_cloud import DeployedCloud, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.protocol.task_view import TaskView

pytestmark = pytest.mark.cloud

MESH = Path(__file__).parent / "meshes" / "deaths" / "mesh.yaml"
# A process that was killed takes its JVM along, and the next one starts anew: on a busy machine that is what takes the time.
MINUTES = 10 * 60.0


@pytest.fixture(scope="module")
def deaths(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedCloud]:
    """A mesh of heavy actors only."""
    state = tmp_path_factory.mktemp("deaths")
    try:
        up(MESH, state, UpOptions(auth=True, workers=WorkerSettings(slots=2, reuse=True)))
        cloud = DeployedCloud(MeshClient(read_local(state)), state)
        yield cloud
        assert cloud.dead_letters() == {}
    finally:
        down(state)


def send(cloud: DeployedCloud, actor: str, payloads: dict[str, Any]) -> None:
    """Put envelopes onto an actor's queue, ten at a time."""
    sqs = cloud.mesh.connection.sqs()
    url = sqs.get_queue_url(QueueName=names.queue_name("deaths", actor))["QueueUrl"]
    route = {"prev": [], "curr": actor, "next": []}
    bodies = [json.dumps({"id": name, "route": route, "payload": payload}) for name, payload in payloads.items()]
    for start in range(0, len(bodies), 10):
        group = enumerate(bodies[start : start + 10])
        answer = sqs.send_message_batch(
            QueueUrl=url, Entries=[{"Id": str(place), "MessageBody": body} for place, body in group]
        )
        assert not answer.get("Failed")


def runs_of(cloud: DeployedCloud, actor: str) -> int:
    """How many job runs the actor had."""
    key = {"pk": {"S": f"RUN#{actor}"}, "sk": {"S": "latest"}}
    item = cloud.client("dynamodb").get_item(TableName=names.table_name("deaths", "pending"), Key=key).get("Item")
    return int(item["number"]["N"]) if item else 0


def said_by(cloud: DeployedCloud, task_id: str) -> list[str]:
    """What is kept of a job's messages to those who look on."""
    items = cloud.client("dynamodb").query(
        TableName=names.table_name("deaths", "tasks"),
        KeyConditionExpression="pk = :id AND begins_with(sk, :fly)",
        ExpressionAttributeValues={":id": {"S": task_id}, ":fly": {"S": "fly#"}},
    )["Items"]
    return [item["messages"]["S"] for item in items]


def ended(cloud: DeployedCloud, envelope_id: str) -> TaskView:
    """The task, once it has ended: halving takes its time."""

    def look() -> TaskView | None:
        task = cloud.mesh.task(envelope_id)
        return task if task is not None and task.status in ("succeeded", "failed", "canceled") else None

    return until(look, f"task {envelope_id} to end", MINUTES)


# Seventeen drivers, half of which die with their JVMs: minutes that not every run of the suite should take.
LONG = pytest.mark.skipif(not os.environ.get("ASYA_FULL_SIZE"), reason="takes minutes; make test-scale")


@pytest.mark.parametrize(
    ("actor", "count", "most"),
    [("each", 200, 4), ("together", 12, 9), pytest.param("together", 200, 18, marks=[LONG, pytest.mark.slow])],
)
def test_10_one_of_many_kills_its_process_and_fails_alone(
    deaths: DeployedCloud, actor: str, count: int, most: int
) -> None:
    names_of = [f"{actor}-{count}-{number:03d}" for number in range(count)]
    culprit = names_of[count * 2 // 3]
    before = runs_of(deaths, actor)
    send(deaths, actor, {name: {"name": name, "deadly": name == culprit} for name in names_of})

    failed = ended(deaths, culprit)
    tasks = [ended(deaths, name) for name in names_of if name != culprit]

    assert {task.status for task in tasks} == {"succeeded"}
    assert (failed.status, failed.reason) == ("failed", "SparkJobFailed")
    assert failed.error is not None
    assert failed.error.type == "SparkJobFailed"
    assert "ExitCode: 9" in failed.error.message
    assert "SPARK_DRIVER/stderr.gz" in failed.error.message
    assert runs_of(deaths, actor) - before <= most


def test_10_a_run_that_works_tells_how_far_it_is_and_is_stopped_when_nobody_wants_it(deaths: DeployedCloud) -> None:
    send(deaths, "endless", {"endless-0": {}, "endless-1": {}})

    def at_work() -> TaskView | None:
        tasks = [deaths.mesh.task(f"endless-{n}") for n in range(2)]
        return next((task for task in tasks if task and task.run and task.run.stages), None)

    task = until(at_work, "stages of a run in the task's record", MINUTES)
    assert task.run is not None
    assert task.run.run_id.startswith("asya.deaths.endless.")
    assert task.run.stages[0].tasks > 1

    until(lambda: said_by(deaths, task.id) or None, "what its job says at once", MINUTES)

    deaths.mesh.cancel("endless-0")
    deaths.mesh.cancel("endless-1")

    def stopped() -> str | None:
        run = deaths.client("dynamodb").get_item(
            TableName=names.table_name("deaths", "pending"),
            Key={"pk": {"S": "RUN#endless"}, "sk": {"S": f"{1:010d}"}},
        )["Item"]
        return run["job_state"]["S"] if run["state"]["S"] == "closed" else None

    assert until(stopped, "the run to be canceled", MINUTES) == "CANCELLED"
    assert {ended(deaths, f"endless-{n}").status for n in range(2)} == {"canceled"}


def test_10_a_run_can_be_looked_at_afterwards(deaths: DeployedCloud, capsys: pytest.CaptureFixture[str]) -> None:
    for number in ("1", "2"):
        show(f"asya.deaths.each.{number:0>10}", state=deaths.state)
    told = capsys.readouterr().out
    assert "FAILED (here: closed)" in told
    assert "ExitCode: 9" in told
    assert "SUCCESS (here: closed)" in told
    assert "billed " in told
    assert "dashboard  http://127.0.0.1:" in told
    assert "runs/each/0000000001/logs/applications/" in told
