"""A mesh with heavy actors in memory, and the command line connected to it."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from asya_cli.job import mesh_runs
from asya_cli.main import app
from tests.doubles.heavy import BUCKET, HeavyWorld, heavy_world

ARN = "arn:aws:iam::123456789012:user/ann"


class Operator:
    """A connection to the mesh in memory."""

    namespace = "flights"
    region = "us-east-1"

    def __init__(self, world: HeavyWorld) -> None:
        self._world = world
        self.invoked: list[str] = []
        self.architecture = "X86_64"

    def dynamodb(self) -> Any:
        return self._world.dynamodb

    def sqs(self) -> Any:
        return self._world.sqs

    def s3(self) -> Any:
        return self._world.s3

    def emr_serverless(self) -> Any:
        emr: Any = self._world.emr
        emr.get_application = lambda **_: {"application": {"architecture": self.architecture}}
        emr.get_dashboard_for_job_run = lambda **_: {"url": "https://dashboard"}
        return emr

    def sts(self) -> Any:
        return self

    def get_caller_identity(self) -> dict[str, str]:
        return {"Arn": ARN}

    def functions(self) -> Any:
        return self

    def invoke(self, **request: Any) -> None:
        self.invoked.append(request["FunctionName"])
        self._world.reconcile()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


@pytest.fixture
def operator(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> Operator:
    connection = Operator(world)
    monkeypatch.delenv("COLUMNS", raising=False)  # pytest-xdist sets it
    monkeypatch.setattr(mesh_runs.MeshRuns, "bucket", BUCKET)
    monkeypatch.setattr("asya.client.connection.read_local", lambda _: connection)
    return connection


@pytest.fixture
def asya(operator: Operator) -> Callable[..., Result]:
    """Run `asya job` with arguments."""
    return lambda *arguments: CliRunner().invoke(app, ["job", *arguments])


def end_run(world: HeavyWorld, number: int, state: str = "SUCCESS", *, vcpu: float = 0.5, details: str = "") -> None:
    """End a run with a bill, and route its results."""
    job_run_id = f"run{number}"
    world.emr.runs[job_run_id]["billedResourceUtilization"] = {"vCPUHour": vcpu, "memoryGBHour": 4 * vcpu}
    world.set_state(job_run_id, state, details=details)
    world.complete()


def read_lines(result: Result) -> list[dict[str, Any]]:
    """The JSON lines that a command printed."""
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]
