"""protocol §10 on the deployed mesh, IAM enforced: a job that kills its process, and a run nobody wants any more."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from asya.protocol import names
from asya.protocol.times import parse_time
from asya_cli.run import show
from tests.cloud.callers import operator
from tests.cloud.deployed_cloud import until
from tests.cloud.heavy_bursts import CRASH_COUNTS, FULL, crash_payloads, crashing_id
from tests.cloud.stream_clients import StreamClient

if TYPE_CHECKING:
    from asya.tasks.view import TaskView
    from tests.cloud.heavy_cloud import HeavyCloud

pytestmark = [pytest.mark.cloud, pytest.mark.slow]

# A process that was killed takes its JVM along, and the next one starts anew: on a busy machine that is what takes the time.
MINUTES = 10 * 60.0
# A job for each envelope loses what its process was at; one for all is halved until the crashing_id is alone.
RUNS_AT_MOST = {"each": 4, "together": 18 if FULL else 5}


def run_item(heavy: HeavyCloud, actor: str, run: str) -> dict[str, dict[str, str]]:
    """What the table says of an actor's run, or of its latest."""
    key = {"pk": {"S": f"RUN#{actor}"}, "sk": {"S": run}}
    item = heavy.client("dynamodb").get_item(TableName=names.table_name("heavy", "pending"), Key=key)["Item"]
    return dict(item)


def said_by(heavy: HeavyCloud, task_id: str) -> list[str]:
    """What is kept of a job's messages to those who look on."""
    items = heavy.client("dynamodb").query(
        TableName=names.table_name("heavy", "tasks"),
        KeyConditionExpression="pk = :id AND begins_with(sk, :fly)",
        ExpressionAttributeValues={":id": {"S": task_id}, ":fly": {"S": "fly#"}},
    )["Items"]
    return [item["messages"]["S"] for item in items]


def wait_for_end(heavy: HeavyCloud, envelope_id: str) -> TaskView:
    """The task, once it has ended: halving takes its time."""

    def look() -> TaskView | None:
        task = heavy.cloud.task(envelope_id)
        return task if task is not None and task.status in ("succeeded", "failed", "canceled") else None

    return until(look, f"task {envelope_id} to end", MINUTES)


@pytest.mark.parametrize("actor", CRASH_COUNTS)
def test_10_one_of_many_kills_its_process_and_fails_alone(heavy: HeavyCloud, actor: str) -> None:
    failed = wait_for_end(heavy, crashing_id(actor))
    tasks = [wait_for_end(heavy, name) for name in crash_payloads(actor) if name != crashing_id(actor)]

    assert {task.status for task in tasks} == {"succeeded"}
    assert (failed.status, failed.reason) == ("failed", "SparkJobFailed")
    assert failed.error is not None
    assert failed.error.type == "SparkJobFailed"
    assert "ExitCode: 9" in failed.error.message
    assert "SPARK_DRIVER/stderr.gz" in failed.error.message
    assert int(run_item(heavy, actor, "latest")["number"]["N"]) <= RUNS_AT_MOST[actor]


def test_10_a_run_can_be_looked_at_afterwards(heavy: HeavyCloud, capsys: pytest.CaptureFixture[str]) -> None:
    wait_for_end(heavy, crashing_id("each"))
    for number in ("1", "2"):
        show(f"asya.heavy.each.{number:0>10}", state=heavy.cloud.state)
    told = capsys.readouterr().out
    assert "FAILED (here: closed)" in told
    assert "ExitCode: 9" in told
    assert "SUCCESS (here: closed)" in told
    assert "billed " in told
    assert "dashboard  http://127.0.0.1:" in told
    assert "runs/each/0000000001/logs/applications/" in told


def delays_of_progress(heavy: HeavyCloud, task_id: str, beats: int) -> list[float]:
    """How long ago, in seconds, that may have happened at most which a new word on the run is the first to tell."""
    client, delays, said_before = StreamClient(operator(heavy.cloud), task_id), [], None
    while len(delays) < beats:
        seen = len(client.events)
        client.connect()
        for event in client.events[seen:]:
            said = (event["data"].get("run") or {}).get("at")
            if said is None or said == said_before:
                continue
            record = until(lambda: heavy.cloud.task(task_id), "the record", MINUTES)
            if said_before is not None:
                delays.append((datetime.now(UTC) - parse_time(said_before)).total_seconds())
            said_before = said
            assert record.run is not None
            assert record.run.at >= said
    return delays


@pytest.mark.rule("10.progress")
def test_10_a_run_that_works_tells_how_far_it_is_and_is_stopped_when_nobody_wants_it(heavy: HeavyCloud) -> None:
    heavy.send(["endless-0", "endless-1"], "endless")

    def at_work() -> TaskView | None:
        tasks = [heavy.cloud.task(f"endless-{n}") for n in range(2)]
        return next((task for task in tasks if task and task.run and task.run.stages), None)

    task = until(at_work, "stages of a run in the task's record", MINUTES)
    assert task.run is not None
    assert task.run.run_id.startswith("asya.heavy.endless.")
    assert task.run.stages[0].tasks > 1

    delays = delays_of_progress(heavy, task.id, 5 if FULL else 2)
    print(f"what a run was at stood in the record and the stream at most {max(delays):.1f} s later (`pytest -rP`)")

    until(lambda: said_by(heavy, task.id) or None, "what its job says at once", MINUTES)

    heavy.cloud.mesh.cancel("endless-0")
    heavy.cloud.mesh.cancel("endless-1")

    def stopped() -> str | None:
        run = run_item(heavy, "endless", f"{1:010d}")
        return run["job_state"]["S"] if run["state"]["S"] == "closed" else None

    assert until(stopped, "the run to be canceled", MINUTES) == "CANCELLED"
    assert {wait_for_end(heavy, f"endless-{n}").status for n in range(2)} == {"canceled"}
