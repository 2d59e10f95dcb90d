"""Tests `asya send`, `asya status` and `asya result` on a deployed mesh, with unusual input and errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from asya.client.connection import find_on_aws
from asya.client.errors import UnreachableError
from asya_cli.errors import ExitCode
from asya_cli.sending.send import wrap_payload
from asya_local.account import read_keys
from tests.cloud.deployed_cloud import TIMEOUT_SECONDS, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud


def asya(cloud: DeployedCloud, *arguments: str, text: str = "") -> tuple[int, str, str]:
    """Runs the command; returns its exit code, standard output and standard error."""
    process = subprocess.run(
        [sys.executable, "-m", "asya_cli.main", *arguments, "--state", str(cloud.state)],
        input=text,
        capture_output=True,
        text=True,
        env={**os.environ, "AWS_PROFILE": "no-such-profile", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return process.returncode, process.stdout, process.stderr


def test_a_payload_from_standard_input_goes_to_its_actor(cloud: DeployedCloud, tmp_path: Path) -> None:
    payload = cloud.put_dataset(tmp_path, 1, "cli")
    code, output, _ = asya(cloud, "send", "-", "--actor", "inspect-dataset", text=json.dumps(payload))
    assert code == 0
    envelope_id = output.strip()
    assert cloud.wait_for_end(envelope_id).status == "succeeded"
    code, output, _ = asya(cloud, "result", envelope_id, "--payload")
    assert code == 0
    assert json.loads(output)["files"]["flights"]["reference"] == payload["flights"]


def test_send_waits_for_the_result_and_tells_a_failure_by_its_exit_code(cloud: DeployedCloud, tmp_path: Path) -> None:
    payload = cloud.put_dataset(tmp_path, 1, "waits")
    code, output, errors = asya(
        cloud, "send", "-", "--actor", "inspect-dataset", "--id", "waits", "--wait", text=json.dumps(payload)
    )
    assert code == 0, errors
    assert json.loads(output)["files"]["flights"]["reference"] == payload["flights"]
    code, output, errors = asya(cloud, "send", "-", "--actor", "inspect-dataset", "--id", "waits", "--wait", text="{}")
    assert (code, output) == (1, "")
    assert "'waits' names a task that has ended (succeeded)" in errors

    text = '{"flights": "raw/none.csv"}'
    code, output, errors = asya(cloud, "send", "-", "--actor", "inspect-dataset", "--wait", text=text)
    assert (code, output) == (ExitCode.TASK_FAILED, "")
    assert "at inspect-dataset: FileNotFoundError" in errors


@pytest.mark.rule("4.claim-check.senders")
def test_a_payload_larger_than_a_message_arrives(cloud: DeployedCloud, tmp_path: Path) -> None:
    payload = {**cloud.put_dataset(tmp_path, 1, "large"), "filler": "x" * 1_500_000}
    cloud.mesh.send(wrap_payload(json.dumps(payload).encode(), "payload", "inspect-dataset", [], "large-payload"))
    task = cloud.wait_for_end("large-payload")
    assert task.status == "succeeded"
    stored = cloud.mesh.stored(task.id, task.result_uri)
    assert stored is not None
    assert json.loads(stored.body)["payload"]["filler"] == payload["filler"]


def test_status_shows_a_failure_with_its_traceback(cloud: DeployedCloud) -> None:
    _, envelope_id, _ = asya(cloud, "send", "-", "--actor", "inspect-dataset", text='{"flights": "raw/none.csv"}')
    cloud.wait_for_end(envelope_id.strip())
    code, output, _ = asya(cloud, "status", envelope_id.strip())
    assert code == ExitCode.TASK_FAILED
    for words in ("failed", "inspect-dataset ●", "FileNotFoundError", "raw/none.csv", "inspect_dataset(payload)"[:15]):
        assert words in output
    code, output, _ = asya(cloud, "status", envelope_id.strip(), "--json")
    assert json.loads(output)["error"]["type"] == "FileNotFoundError"


def test_logs_of_an_envelope_and_of_an_actor(cloud: DeployedCloud) -> None:
    _, envelope_id, _ = asya(cloud, "send", "-", "--actor", "inspect-dataset", text='{"flights": "raw/none.csv"}')
    name = envelope_id.strip()
    cloud.wait_for_end(name)

    def told() -> str | None:  # logs come after the end that they tell of
        code, output, errors = asya(cloud, "logs", name)
        assert code == 0, errors
        return output if " x-sump  ERROR   envelope failed" in output else None

    output = until(told, "the log of the failure")
    assert " inspect-dataset  WARNING handler failed" in output
    assert all(name in line for line in output.splitlines() if line.startswith("20"))
    code, output, _ = asya(cloud, "logs", "inspect-dataset", "--since", "10m")
    assert code == 0
    assert name in output


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (("send", "-", "--actor", "nobody"), ExitCode.NOT_FOUND, "the mesh 'flights' has no actor 'nobody'"),
        (("send", "-"), ExitCode.COMMAND_FAILED, "route is missing"),
        (("status", "never-seen"), ExitCode.NOT_FOUND, "there is no task 'never-seen'"),
        (("result", "never-seen"), ExitCode.NOT_FOUND, "there is no task 'never-seen'"),
        (("call", "no-such-tool"), ExitCode.NOT_FOUND, "the mesh 'flights' has no tool 'no-such-tool'"),
    ],
)
def test_an_impossible_command_fails_with_one_line(
    cloud: DeployedCloud, arguments: tuple[str, ...], exit_code: ExitCode, message: str
) -> None:
    code, output, errors = asya(cloud, *arguments, text="{}")
    assert (code, output) == (exit_code, "")
    assert message in errors.splitlines()[0]
    assert "Traceback" not in errors


def test_smoke_sends_a_light_envelope_and_a_job_run(cloud: DeployedCloud) -> None:
    code, output, _ = asya(cloud, "smoke", "--tool", "no-such-tool")
    lines = {line.split()[1]: line for line in output.splitlines()}
    assert [line.split()[0] for line in lines.values()] == ["ok", "skipped", "ok", "failed"], output
    assert "the mesh has no x-checkpoint" in lines["light"]
    assert "asya.flights.x-index.00" in lines["index"]
    assert "the mesh 'flights' has no tool 'no-such-tool'" in lines["no-such-tool"]
    assert code == 1


def test_a_report_sums_up_what_has_ended(cloud: DeployedCloud) -> None:
    """The tests before have sent envelopes that failed and that succeeded, and run a job."""
    code, output, errors = asya(cloud, "report", "--since", "1h", "--json")
    assert code == 0, errors
    summary = json.loads(output)
    starts = {each["start"]: each for each in summary["ends"]}
    assert starts["inspect-dataset"]["succeeded"] >= 1
    assert starts["inspect-dataset"]["slowest"] >= starts["inspect-dataset"]["median"] > 0
    causes = [(each["actor"], each["error"].partition(":")[0]) for each in summary["causes"]]
    assert ("inspect-dataset", "FileNotFoundError") in causes
    code, output, errors = asya(cloud, "report", "--since", "1h")
    assert code == 0, errors
    assert "inspect-dataset" in output


def test_a_mesh_on_aws_is_found_by_its_stacks(cloud: DeployedCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    key = read_keys(cloud.state / "keys.json")["deployer"]
    for name, value in key.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", cloud.mesh.connection.endpoint_url or "")
    connection, local = find_on_aws("flights", "us-east-1"), cloud.mesh.connection
    assert (connection.data, connection.results, connection.namespace) == (local.data, local.results, local.namespace)
    assert connection.gateway_url.startswith("http")
    with pytest.raises(UnreachableError, match="cannot find the mesh 'no-such' on AWS"):
        find_on_aws("no-such", "us-east-1")
