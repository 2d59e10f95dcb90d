"""`asya job logs`: what EMR Serverless has uploaded, and what it uploads meanwhile."""

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import Result

from asya.protocol.job_runs import logs_prefix
from asya_cli.job.logs import DRIVER, LAST_SECONDS, POLL_SECONDS, LogTail, follow_logs
from asya_cli.job.mesh_runs import MeshRuns
from tests.doubles.dispatching import start_run
from tests.doubles.heavy import BUCKET, HeavyWorld, done_result
from tests.unit.asya_cli.job.conftest import Operator, end_run

Asya = Callable[..., Result]
RUN = "asya.flights.clean.0000000001"


def upload(world: HeavyWorld, text: str, worker: str = "SPARK_DRIVER", name: str = "stderr.gz") -> None:
    key = f"{logs_prefix('clean', 1)}applications/00app/jobs/run1/{worker}/{name}"
    world.s3.put_object(Bucket=BUCKET, Key=key, Body=gzip.compress(text.encode()))


def test_the_driver_by_default_and_an_executor_by_its_number(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a")
    upload(world, "driver out\n", name="stdout.gz")
    upload(world, "driver err\n")
    upload(world, "executor err\n", "SPARK_EXECUTOR/2")

    driver, executor = asya("logs", RUN), asya("logs", RUN, "--executor", "2")

    assert driver.stdout == "driver err\ndriver out\n"
    assert "there are also logs of: executor 2" in driver.stderr
    assert executor.stdout == "executor err\n"


def test_no_logs_yet(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a")
    result = asya("logs", RUN)
    assert result.exit_code == 1
    assert "there are no logs of the driver" in str(result.exception)


def test_follow_prints_what_was_uploaded_until_the_run_has_ended(
    world: HeavyWorld, operator: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    start_run(world, "a")
    connection: Any = operator
    mesh = MeshRuns(connection)

    def end() -> None:
        world.write_results(1, [done_result(0, 1)])
        end_run(world, 1)

    # What happens during each pause; the last lines come after the end.
    events: list[Callable[[], None]] = [
        lambda: upload(world, "one\n"),
        lambda: None,
        lambda: upload(world, "one\ntwo\n"),
        end,
        lambda: upload(world, "one\ntwo\nthree\n"),
    ]
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if events:
            events.pop(0)()

    follow_logs(LogTail(mesh, mesh.read(RUN), DRIVER), lambda: mesh.read(RUN), sleep)

    printed = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("{")]  # metrics of the mesh
    assert printed == ["one", "two", "three"]
    assert not events
    assert len(pauses) <= 6 + LAST_SECONDS / POLL_SECONDS


def test_follow_does_not_wait_for_a_run_that_has_ended_before(world: HeavyWorld, operator: Operator) -> None:
    start_run(world, "a")
    world.write_results(1, [done_result(0, 1)])
    end_run(world, 1)
    upload(world, "all\n")
    connection: Any = operator
    mesh = MeshRuns(connection)
    pauses: list[float] = []

    follow_logs(LogTail(mesh, mesh.read(RUN), DRIVER), lambda: mesh.read(RUN), pauses.append)

    assert pauses == []


def test_control_characters_of_a_log_are_visible(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a")
    upload(world, "\x1b[2Jgone\n")
    assert asya("logs", RUN).stdout == "\\x1b[2Jgone\n"
