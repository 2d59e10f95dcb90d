"""`asya logs`: the lines of functions about one envelope, or of one actor."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from msgspec.structs import replace
from typer.testing import CliRunner

from asya.capabilities.operations.log_lines import LogLine
from asya.client.errors import NotFoundError
from asya.client.operations import Operations
from asya.heavy.aws.run_records import RunRecords
from asya.protocol import names
from asya.protocol.job_runs import logs_prefix
from asya.protocol.run_progress import RunNote
from asya.protocol.times import format_time
from asya.tasks.listing import TimelineEntry
from asya.tasks.view import TaskView
from asya_cli import logs as logs_module
from asya_cli.clock import using
from asya_cli.errors import CommandError, ExitCode
from asya_cli.job.mesh_runs import MeshRuns
from asya_cli.logs import described
from asya_cli.main import app
from asya_cli.options import MeshOptions
from tests.doubles.command_clock import SetClock
from tests.doubles.dynamo import create_tasks_table
from tests.doubles.job_runs import MANIFEST
from tests.doubles.log_lines import FakeLogs

NOW = datetime(2031, 3, 1, 12, tzinfo=UTC)
START = int(NOW.timestamp()) - 600
RUN = "asya.shop.bill.0000000001"
SINCE = format_time(datetime.fromtimestamp(START, UTC))


def shown_at(second: int) -> str:
    return f"{datetime.fromtimestamp(START + second, UTC):%Y-%m-%dT%H:%M:%S}.000Z"


class FakeMesh:
    """A mesh with one task, and log groups in a fake CloudWatch."""

    def __init__(self) -> None:
        self.logs = FakeLogs("shop")
        self.dynamodb = boto3.client("dynamodb", "us-east-1")
        self.s3 = boto3.client("s3", "us-east-1")
        self.connection: Any = SimpleNamespace(
            namespace="shop",
            endpoint_url=None,
            logs=lambda: self.logs,
            dynamodb=lambda: self.dynamodb,
            s3=lambda: self.s3,
        )
        self.statuses = ["succeeded"]
        self.run: RunNote | None = None

    def task(self, envelope_id: str) -> TaskView | None:
        if envelope_id not in ("order-7", "ship"):
            return None
        status: Any = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return TaskView(
            id=envelope_id, status=status, progress_percent=100, created_at=SINCE, updated_at=SINCE, generation=0
        )

    def timeline(self, _envelope_id: str) -> list[TimelineEntry]:
        return [TimelineEntry(generation=0, position=0, attempt=1, actor="bill", run=self.run)]

    def write(self, actor: str, second: float, message: str | dict[str, Any]) -> None:
        self.logs.write(actor, datetime.fromtimestamp(START + second, UTC), message)


@pytest.fixture
def mesh(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeMesh]:
    monkeypatch.setattr("asya_cli.tasks.records.RECORD_SECONDS", 0.0)
    with mock_aws():
        fake = FakeMesh()
        monkeypatch.setattr(MeshOptions, "client", lambda _: fake)
        with using(SetClock(lambda: NOW)):
            yield fake


def lines(*arguments: str) -> list[str]:
    done = CliRunner().invoke(app, ["logs", *arguments])
    if isinstance(done.exception, CommandError):
        raise done.exception
    assert done.exit_code == 0, done.exception
    return done.output.splitlines()


def entry(message: str, **fields: Any) -> dict[str, Any]:
    return {"level": "INFO", "message": message, "timestamp": "…", "service": "bill", "namespace": "shop"} | fields


def test_the_lines_about_an_envelope_come_from_its_actors_by_time(mesh: FakeMesh) -> None:
    mesh.write("x-sump", 2, entry("envelope failed", envelope_id="order-7", level="ERROR", reason="RuntimeError"))
    mesh.write("bill", 1, entry("handler failed", envelope_id="order-7", exception="Traceback…\nKeyError: 'x'"))
    mesh.write("bill", 1, entry("handler failed", envelope_id="order-8"))
    mesh.write("ship", 1, entry("not on its way", envelope_id="order-7"))
    assert lines("order-7") == [
        f"{shown_at(1)} bill  INFO    handler failed envelope_id=order-7",
        "Traceback…",
        "KeyError: 'x'",
        f"{shown_at(2)} x-sump  ERROR   envelope failed envelope_id=order-7 reason=RuntimeError",
    ]


@pytest.mark.rule("1.id.characters")
def test_a_task_with_the_name_of_an_actor_has_lines_of_its_own(mesh: FakeMesh) -> None:
    mesh.write("ship", 1, entry("handler failed", envelope_id="order-7"))
    mesh.write("bill", 2, entry("handler failed", envelope_id="ship"))
    assert lines("ship") == [f"{shown_at(1)} ship  INFO    handler failed envelope_id=order-7"]
    assert lines("ship", "--task") == [f"{shown_at(2)} bill  INFO    handler failed envelope_id=ship"]


@pytest.fixture
def gateway_lines(mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch) -> list[LogLine]:
    """The lines of the gateway of a mesh of `asya dev`, which has no log groups."""
    told = [
        ("bill", "bill: order-7 took 3 ms"),
        ("bill", "bill: order-71 took 4 ms"),
        ("x-sump", "x-sump: order-7 failed"),
    ]
    found = [
        LogLine(id=str(number), at=format_time(NOW - timedelta(seconds=9 - number)), actor=actor, line=line)
        for number, (actor, line) in enumerate(told)
    ]

    def actor_lines(_: Operations, actor: str, since: datetime) -> Iterator[LogLine]:
        if actor not in ("bill", "x-sink", "x-sump"):
            raise NotFoundError(f"no actor {actor!r}")
        return (line for line in found if line.actor == actor and (line.at or "") >= format_time(since))

    mesh.connection.endpoint_url = "http://127.0.0.1:4566"
    monkeypatch.setattr(Operations, "actor_lines", actor_lines)
    return found


@pytest.mark.slow
def test_a_mesh_without_log_groups_has_its_lines_at_the_gateway(gateway_lines: list[LogLine]) -> None:
    assert [line.partition("  ")[2] for line in lines("order-7")] == [gateway_lines[0].line, gateway_lines[2].line]
    assert [line.partition("  ")[2] for line in lines("bill")] == [line.line for line in gateway_lines[:2]]
    assert lines("x-sink") == ["x-sink has logged nothing since then"]
    with pytest.raises(CommandError, match="no task and no actor 'nobody'"):
        lines("nobody")


def test_a_local_cloud_has_its_lines_in_log_groups(mesh: FakeMesh, gateway_lines: list[LogLine]) -> None:
    mesh.write(names.GATEWAY_API, 1, entry("started"))
    mesh.write("bill", 1, entry("handler failed", envelope_id="order-7"))
    assert lines("order-7") == [f"{shown_at(1)} bill  INFO    handler failed envelope_id=order-7"]


@pytest.fixture
def run(mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The envelope went through a job run; returns the upload of a worker's log."""
    monkeypatch.setattr(MeshRuns, "bucket", "shop-bucket")
    mesh.s3.create_bucket(Bucket="shop-bucket")
    create_tasks_table(mesh.dynamodb, "asya-shop-pending")
    manifest = replace(MANIFEST, run_id=RUN, namespace="shop", actor="bill", number=1)
    RunRecords(mesh.dynamodb, table="asya-shop-pending", retention=timedelta(days=1)).open(
        manifest, now=NOW, digest="0f" * 32
    )
    mesh.run = RunNote(run_id=RUN, job_run_id="j", state="RUNNING", at=SINCE, envelopes=1, done=0)

    def upload(worker: str, text: str, stream: str = "stdout") -> None:
        key = f"{logs_prefix('bill', 1)}applications/00app/jobs/j/{worker}/{stream}.gz"
        mesh.s3.put_object(Bucket="shop-bucket", Key=key, Body=gzip.compress(text.encode()))

    return upload


def test_the_lines_of_the_job_runs_follow_the_driver_and_every_executor(
    mesh: FakeMesh, run: Callable[..., None]
) -> None:
    mesh.write("bill", 1, entry("pending", envelope_id="order-7"))
    run("SPARK_EXECUTOR/2", "task 1\n", "stderr")
    run("SPARK_DRIVER", "billing\nbilled \x1b[2J")
    assert lines("order-7") == [
        f"{shown_at(1)} bill  INFO    pending envelope_id=order-7",
        f"job run {RUN}: `asya job show {RUN} --state .asya`",
        f"{RUN} driver stdout  billing",
        f"{RUN} driver stdout  billed \\x1b[2J",
        f"{RUN} executor 2 stderr  task 1",
    ]
    printed = [json.loads(line) for line in lines("order-7", "--json") if line.startswith("{")]
    assert printed[-1] == {"actor": "bill", "line": "task 1", "run_id": RUN, "worker": "2", "stream": "stderr"}
    assert list(printed[0]) == ["at", "actor", "line"]


def test_an_upload_that_comes_later_is_printed_from_where_the_last_one_ended(
    mesh: FakeMesh, run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh.statuses = ["running", "running", "succeeded"]
    monkeypatch.setattr(logs_module, "_LATE_RUN_SECONDS", 0.0)
    uploads = iter(["one\n", "one\ntwo\n", "one\ntwo\n"])
    with using(SetClock(lambda: NOW, count().__next__, lambda _: run("SPARK_EXECUTOR/1", next(uploads)))):
        printed = lines("order-7", "--follow")[1:]
    assert printed == [f"{RUN} executor 1 stdout  {line}" for line in ("one", "two")]


def test_a_run_whose_record_has_expired_is_told(mesh: FakeMesh, run: Callable[..., None]) -> None:
    mesh.run = RunNote(
        run_id="asya.shop.bill.0000000009", job_run_id="j", state="SUCCESS", at=SINCE, envelopes=1, done=1
    )
    assert lines("order-7")[0] == "there is no job run 'asya.shop.bill.0000000009'"


def test_the_lines_of_an_envelope_with_a_longer_id_are_not_printed(mesh: FakeMesh) -> None:
    mesh.write("bill", 1, entry("other", envelope_id="order-71"))
    mesh.write("bill", 1, entry("own", envelope_id="order-7"))
    assert [line.split()[3] for line in lines("order-7")] == ["own"]


def test_an_envelope_is_followed_to_its_end_without_a_line_twice(
    mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh.write("bill", 1, entry("one", envelope_id="order-7"))
    mesh.statuses = ["running", "running", "running", "succeeded"]
    monkeypatch.setattr(logs_module, "_LATE_SECONDS", 0.0)
    waits = iter(range(2, 100))

    def write(_: float) -> None:
        mesh.write("bill", next(waits), entry(f"at {next(waits)}", envelope_id="order-7"))

    with using(SetClock(lambda: NOW, count().__next__, write)):
        shown = [line.split()[3] for line in lines("order-7", "--follow")]
    assert shown[:2] == ["one", "at"]
    assert len(shown) == len(set(lines("order-7")))


def test_an_actor_has_all_its_lines_and_no_metrics(mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh.write("bill", 1, "checking 7\n")
    mesh.write("bill", 2, {"_aws": {"Timestamp": 1}, "Received": [1.0]})
    mesh.write("bill", 3, "REPORT RequestId: 1 Duration: 2 ms")
    mesh.write("bill", 4, entry("late", delay=2.5))
    assert [line.partition("  ")[2] for line in lines("bill", "--since", SINCE)] == [
        "checking 7",
        "INFO    late delay=2.5",
    ]
    assert lines("bill", "--since", "1s") == ["bill has logged nothing since then"]


def test_an_actor_with_metrics_alone_has_logged_nothing(mesh: FakeMesh) -> None:
    """A healthy actor whose handler prints nothing: the command would print nothing and say nothing."""
    mesh.write("bill", 2, {"_aws": {"Timestamp": 1}, "Received": [1.0]})
    mesh.write("bill", 3, "END RequestId: 1")
    assert lines("bill", "--since", SINCE) == ["bill has logged nothing since then"]


def test_what_is_neither_is_not_found(mesh: FakeMesh) -> None:
    with pytest.raises(CommandError, match="there is no task and no actor 'nobody'") as caught:
        lines("nobody")
    assert caught.value.code is ExitCode.NOT_FOUND


def test_an_envelope_may_have_a_name_that_no_log_group_has(mesh: FakeMesh) -> None:
    with pytest.raises(CommandError, match="there is no task and no actor 'order:42 é'"):
        lines("order:42 é")


def test_a_task_without_logs_is_told(mesh: FakeMesh) -> None:
    assert lines("order-7") == ["no function has logged about it"]


@pytest.mark.parametrize("level", [None, {"a": 1}, 3])
def test_a_line_of_a_handler_may_have_any_level(level: object) -> None:
    assert "late" in str(described(json.dumps({"message": "late", "level": level})))


@pytest.mark.parametrize(
    ("kind", "record", "is_shown"),
    [
        ("platform.start", {"requestId": "r"}, False),
        ("platform.report", {"requestId": "r", "status": "success"}, False),
        ("platform.report", {"requestId": "r", "status": "timeout"}, True),
        ("platform.runtimeDone", {"requestId": "r", "status": "error", "errorType": "Runtime.ExitError"}, True),
        ("platform.report", "of somebody else", True),
        ("order", {"status": "success"}, True),
    ],
)
def test_of_the_lines_of_lambda_in_its_json_format_those_of_failures_are_shown(
    kind: str, record: object, is_shown: bool
) -> None:
    message = json.dumps({"time": "2026-11-20T09:00:00Z", "type": kind, "record": record})
    assert described(message) == (message if is_shown else None)


@pytest.mark.parametrize("message", ["{", "[1]", '{"a": 1}', "plain"])
def test_any_other_line_is_shown_as_it_is(message: str) -> None:
    assert described(message) == message
