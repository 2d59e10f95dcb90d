"""Tests protocol §10 on the deployed mesh, with IAM enforced: jobs that kill their process, and a canceled run."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from asya.protocol import names
from asya.protocol.job_runs import logs_prefix
from asya.protocol.times import parse_time
from asya_cli.main import app
from tests.cloud.callers import operator
from tests.cloud.deployed_cloud import until
from tests.cloud.heavy_bursts import CRASH_COUNTS, FULL, OWN_RUN_IDS, crash_payloads, crashing_id
from tests.cloud.stream_clients import StreamClient

if TYPE_CHECKING:
    from asya.tasks.view import TaskView
    from tests.cloud.heavy_cloud import HeavyCloud

pytestmark = [pytest.mark.cloud, pytest.mark.slow]

# A killed process ends its JVM too, and the start of the next JVM is slow on a busy machine.
RUN_TIMEOUT_SECONDS = 10 * 60.0
# `each` loses the envelope at work; `together` halves its batch until the crashing envelope is alone.
MAX_RUNS = {"each": 4, "together": 18 if FULL else 3}


def run_item(heavy: HeavyCloud, actor: str, run: str) -> dict[str, dict[str, str]]:
    """Reads the item of an actor's run by its number, or of the latest run."""
    key = {"pk": {"S": f"RUN#{actor}"}, "sk": {"S": run}}
    item = heavy.client("dynamodb").get_item(TableName=names.table_name("heavy", "pending"), Key=key)["Item"]
    return dict(item)


def stored_partials(heavy: HeavyCloud, task_id: str) -> list[str]:
    """Reads the stored partials of a task."""
    items = heavy.client("dynamodb").query(
        TableName=names.table_name("heavy", "tasks"),
        KeyConditionExpression="pk = :id AND begins_with(sk, :fly)",
        ExpressionAttributeValues={":id": {"S": task_id}, ":fly": {"S": "fly#"}},
    )["Items"]
    return [item["messages"]["S"] for item in items]


def wait_for_end(heavy: HeavyCloud, envelope_id: str) -> TaskView:
    """Waits until the task has ended; the time limit allows for several runs."""
    return heavy.cloud.wait_for_end(envelope_id, RUN_TIMEOUT_SECONDS)


@pytest.mark.parametrize("actor", CRASH_COUNTS)
def test_10_only_the_crashing_envelope_fails(heavy: HeavyCloud, actor: str) -> None:
    failed = wait_for_end(heavy, crashing_id(actor))
    tasks = [wait_for_end(heavy, name) for name in crash_payloads(actor) if name != crashing_id(actor)]

    assert {task.status for task in tasks} == {"succeeded"}
    assert (failed.status, failed.reason) == ("failed", "SparkJobFailed")
    assert failed.error is not None
    assert failed.error.type == "SparkJobFailed"
    assert "ExitCode: 9" in failed.error.message
    assert "SPARK_DRIVER/stderr.gz" in failed.error.message
    assert int(run_item(heavy, actor, "latest")["number"]["N"]) <= MAX_RUNS[actor]


def job(heavy: HeavyCloud, *arguments: str) -> str:
    """Runs `asya job` with the operator's key; returns what it printed."""
    result = CliRunner().invoke(app, ["job", *arguments, "--state", str(heavy.cloud.state)])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_10_the_operator_sees_ended_runs(heavy: HeavyCloud) -> None:
    """A run that failed, and one of an actor whose jobs all succeed: which runs the crashing envelope has depends on its place."""
    wait_for_end(heavy, crashing_id("each"))
    squared = next(iter(OWN_RUN_IDS))
    wait_for_end(heavy, squared)
    first = "asya.heavy.each.0000000001"
    second = next(hop.run.run_id for hop in heavy.cloud.mesh.timeline(squared) if hop.run is not None)
    output = job(heavy, "show", first) + job(heavy, "show", second)
    assert "EMR state  FAILED\n" in output
    assert "ExitCode: 9" in output
    assert "EMR state  SUCCESS\n" in output
    assert "state      succeeded\n" in output
    assert "billed " in output
    assert "dashboard  http://127.0.0.1:" in output
    assert "runs/each/0000000001/logs/applications/" in output
    assert "prices     $0.042094 per vCPU-hour" in output
    assert "every envelope has a result" in output
    assert f"{crashing_id('each')} was the first" in output or "suspected: " in output
    assert first in job(heavy, "list", "-n", "1000")
    assert "==> driver stderr <==" in job(heavy, "logs", first, "--follow")


@pytest.mark.rule("13.operations.logs")
def test_13_the_lines_of_an_envelope_are_also_those_of_its_driver_and_executors(heavy: HeavyCloud) -> None:
    """The local cloud has no executors of their own, so the test writes the file that EMR Serverless writes for one."""
    name = crashing_id("each")
    wait_for_end(heavy, name)
    run = next(hop.run.run_id for hop in heavy.cloud.mesh.timeline(name) if hop.run is not None)
    bucket = heavy.cloud.mesh.connection.results.bucket
    key = f"{logs_prefix('each', int(run[-10:]))}applications/00a/jobs/00b/SPARK_EXECUTOR/1/stdout.gz"
    heavy.client("s3").put_object(Bucket=bucket, Key=key, Body=gzip.compress(b"task 0 of stage 0\n"))

    result = CliRunner().invoke(app, ["logs", name, "--state", str(heavy.cloud.state)])
    assert result.exit_code == 0, (result.output, result.exception)
    assert f"{run} executor 1 stdout  task 0 of stage 0" in result.stdout.splitlines()
    assert any(line.startswith(f"{run} driver ") for line in result.stdout.splitlines())

    lines: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        status, page = operator(heavy.cloud).call("GET", f"/api/v1/operations/logs/{name}", **cursor)
        assert status == 200, page
        lines += page["items"]
        if "next_cursor" not in page:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert {"1", "driver"} <= {line.get("worker") for line in lines if line.get("run_id") == run}
    assert all(name in line["line"] for line in lines if "run_id" not in line)
    status, page = operator(heavy.cloud).call("GET", f"/api/v1/operations/runs/{run}/logs", source="executor")
    assert (status, [line["line"] for line in page["items"]]) == (200, ["task 0 of stage 0"])


def progress_delays(heavy: HeavyCloud, task_id: str, count: int) -> list[float]:
    """Measures for each new heartbeat in the stream the age of the previous one, in seconds: the longest delay."""
    client = StreamClient(operator(heavy.cloud), task_id)
    delays: list[float] = []
    previous = None
    while len(delays) < count:
        known_events = len(client.events)
        client.connect()
        for event in client.events[known_events:]:
            heartbeat = (event["data"].get("run") or {}).get("at")
            if heartbeat is None or heartbeat == previous:
                continue
            record = until(lambda: heavy.cloud.task(task_id), "the record", RUN_TIMEOUT_SECONDS)
            if previous is not None:
                delays.append((datetime.now(UTC) - parse_time(previous)).total_seconds())
            previous = heartbeat
            assert record.run is not None
            assert record.run.at >= heartbeat
    return delays


@pytest.mark.rule("10.progress")
def test_10_a_run_reports_progress_and_is_canceled_with_its_last_task(heavy: HeavyCloud) -> None:
    heavy.send(["endless-0", "endless-1"], "endless")

    def task_with_stages() -> TaskView | None:
        tasks = [heavy.cloud.task(f"endless-{n}") for n in range(2)]
        return next((task for task in tasks if task and task.run and task.run.stages), None)

    task = until(task_with_stages, "stages of a run in the task's record", RUN_TIMEOUT_SECONDS)
    assert task.run is not None
    assert task.run.run_id.startswith("asya.heavy.endless.")
    assert task.run.stages[0].tasks > 1

    delays = progress_delays(heavy, task.id, 5 if FULL else 2)
    print(f"progress reached the record and the stream within {max(delays):.1f} s (`pytest -rP`)")

    until(lambda: stored_partials(heavy, task.id) or None, "the partials of the job", RUN_TIMEOUT_SECONDS)

    heavy.cloud.mesh.cancel("endless-0")
    heavy.cloud.mesh.cancel("endless-1")

    def closed_state() -> str | None:
        run = run_item(heavy, "endless", f"{1:010d}")
        return run["job_state"]["S"] if run["state"]["S"] == "closed" else None

    assert until(closed_state, "the run to be canceled", RUN_TIMEOUT_SECONDS) == "CANCELLED"
    assert {wait_for_end(heavy, f"endless-{n}").status for n in range(2)} == {"canceled"}


@pytest.mark.rule("10.drain")
@pytest.mark.rule("10.drain.end")
def test_10_the_operator_drains_an_actor_and_cancels_a_run(heavy: HeavyCloud) -> None:
    job(heavy, "drain", "endless", "--reason", "maintenance")
    heavy.send(["endless-drained"], "endless")
    waiting = "(maintenance); 1 envelope pending"
    until(lambda: waiting in job(heavy, "list", "endless") or None, "the envelope to be pending", RUN_TIMEOUT_SECONDS)
    before = run_item(heavy, "endless", "latest")["number"]["N"]
    heavy.reconcile()
    assert run_item(heavy, "endless", "latest")["number"]["N"] == before

    job(heavy, "undrain", "endless")

    run = f"asya.heavy.endless.{int(before) + 1:010d}"
    until(lambda: run in job(heavy, "list", "endless") or None, "a run after the drain", RUN_TIMEOUT_SECONDS)
    until(lambda: " at work " in job(heavy, "show", run) or None, "the envelope to be at work", RUN_TIMEOUT_SECONDS)
    job(heavy, "cancel", run)
    heavy.cloud.mesh.cancel("endless-drained")  # else it is tried again
    verdict = "endless-drained was the first and only envelope at work"
    until(lambda: verdict in job(heavy, "show", run) or None, "the verdict", RUN_TIMEOUT_SECONDS)
    assert "CANCELLED" in job(heavy, "show", run)
