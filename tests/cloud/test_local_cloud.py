"""The command `asya local`: it starts and stops a cloud, and no crash leaves a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from botocore.exceptions import ClientError

from asya_local.account import AccessKey, aws_client
from asya_local.processes import cloud_processes, read_records
from asya_local.state_folder import StateFolder
from tests.cloud.stand_in_cloud import SECONDS, until
from tests.interrupts import restore_interrupts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.cloud

MESH = """
namespace: tiny
code: handlers
actors:
  echo: {handler: echo.echo}
tools:
  echo: {description: says it again, route: [echo]}
"""


class Asya:
    """The command with a mesh and a state folder outside the project."""

    def __init__(self, path: Path) -> None:
        self.folder = StateFolder.at(path / "state")
        self.mesh = path / "mesh.yaml"
        self.mesh.write_text(MESH)
        (path / "handlers").mkdir()
        (path / "handlers" / "echo.py").write_text("def echo(payload):\n    return payload\n")

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `asya local …`."""
        command = [sys.executable, "-m", "asya_cli.main", "local", *arguments, "--state", str(self.folder.root)]
        # The local cloud must not use the developer's own keys.
        environment = {**os.environ, "AWS_PROFILE": "none", "AWS_ACCESS_KEY_ID": "AKIAREAL", "AWS_REGION": "eu-west-1"}
        return subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=restore_interrupts,  # noqa: PLW1509 - no thread is running here
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run `asya local …` to its end; return its exit code and its output."""
        process = self.begin(*arguments)
        output, _ = process.communicate(timeout=SECONDS)
        return process.returncode, output

    def up(self) -> tuple[int, str]:
        return self.run("up", "--mesh", str(self.mesh))

    def client(self, service: str) -> Any:
        """Create a client with the operator's key."""
        connection = json.loads(self.folder.connection.read_text())
        return aws_client(
            service, connection["endpoint_url"], AccessKey(connection["access_key"], connection["secret_key"])
        )


@pytest.fixture(scope="module")
def asya(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asya]:
    command = Asya(tmp_path_factory.mktemp("local"))
    yield command
    command.run("down")


@pytest.fixture
def running(asya: Asya) -> Asya:
    """The command with a running cloud, so that each test below also runs alone."""
    if asya.run("status")[0] != 0:
        code, output = asya.up()
        assert code == 0, output
    return asya


def wait_for_servers(asya: Asya, process: subprocess.Popen[str]) -> None:
    """Wait until an `up` has started its servers."""

    def started() -> bool:
        assert process.poll() is None, process.communicate()[0]
        return len(read_records(asya.folder)) == 2

    until(started, SECONDS, "the servers")


def process_message(asya: Asya) -> str:
    """Make a worker of the mesh process a message; return the URL of its queue."""
    sqs = asya.client("sqs")
    url: str = sqs.get_queue_url(QueueName="asya-tiny-echo")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="not an envelope")

    def handled() -> bool:
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(names))["Attributes"]
        return all(counts[name] == "0" for name in names)

    until(handled, SECONDS, "the message to be handled")
    return url


def test_ctrl_c_during_up_stops_all_processes(asya: Asya) -> None:
    process = asya.begin("up", "--mesh", str(asya.mesh))
    wait_for_servers(asya, process)

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SECONDS)

    assert process.returncode != 0
    assert not cloud_processes(asya.folder)
    assert asya.run("status")[0] == 1


def test_an_invalid_mesh_file_is_reported_and_nothing_starts(asya: Asya, tmp_path: Path) -> None:
    wrong = tmp_path / "mesh.yaml"
    wrong.write_text(MESH.replace("handler:", "handlr:"))

    code, output = asya.run("up", "--mesh", str(wrong))

    assert code == 1
    assert "mesh.yaml" in output
    assert "handlr" in output
    assert "Traceback" not in output
    assert not cloud_processes(asya.folder)


def test_up_after_a_killed_up(asya: Asya) -> None:
    process = asya.begin("up", "--mesh", str(asya.mesh))
    wait_for_servers(asya, process)
    survivors = cloud_processes(asya.folder)
    process.kill()
    process.communicate()
    assert survivors

    code, output = asya.up()

    assert code == 0, output
    assert not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in survivors)
    assert asya.run("status")[0] == 0


def test_messages_are_processed_and_iam_is_enforced(running: Asya) -> None:
    sqs, url = running.client("sqs"), process_message(running)
    with pytest.raises(ClientError, match="not authorized to perform: sqs:ReceiveMessage"):
        sqs.receive_message(QueueUrl=url)
    with pytest.raises(ClientError, match="not authorized"):
        running.client("iam").list_users()
    assert running.folder.connection.stat().st_mode & 0o077 == 0


def run_echo(asya: Asya, envelope_id: str) -> Any:
    """Send an envelope to the mesh, and return the payload of its result."""
    sqs, s3 = asya.client("sqs"), asya.client("s3")
    connection = json.loads(asya.folder.connection.read_text())
    envelope = {"id": envelope_id, "payload": {}, "route": {"prev": [], "curr": "echo", "next": []}}
    url = sqs.get_queue_url(QueueName="asya-tiny-echo")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody=json.dumps(envelope))
    key = f"{connection['results_prefix']}succeeded/{envelope_id}.json"
    content: list[bytes] = []

    def stored() -> bool:
        try:
            content.append(s3.get_object(Bucket=connection["results_bucket"], Key=key)["Body"].read())
        except s3.exceptions.NoSuchKey:
            return False
        return True

    until(stored, SECONDS, f"the result of {envelope_id}")
    return json.loads(content[0])["payload"]


def change_handler(asya: Asya, value: int) -> None:
    (asya.mesh.parent / "handlers" / "echo.py").write_text(
        f"def echo(payload):\n    return {{**payload, 'value': {value}}}\n"
    )


def test_a_second_up_without_a_change_runs_no_step(running: Asya) -> None:
    code, output = running.up()

    assert code == 0, output
    assert "✔" not in output


def test_a_changed_handler_replaces_the_code_alone(running: Asya) -> None:
    before, connection = read_records(running.folder), running.folder.connection.read_text()
    change_handler(running, 1)

    code, output = running.up()

    assert code == 0, output
    assert "handlers" in output
    assert "cdk" not in output
    assert read_records(running.folder) == before
    assert running.folder.connection.read_text() == connection
    assert run_echo(running, "changed-handler") == {"value": 1}


def test_code_is_that_of_the_folder_after_any_order_of_changes(running: Asya) -> None:
    """CloudFormation sees no change where the code is again that of its last deployment."""
    deployed = (running.mesh.parent / "handlers" / "echo.py").read_text()
    change_handler(running, 2)
    assert running.up()[0] == 0
    (running.mesh.parent / "handlers" / "echo.py").write_text(deployed)
    running.mesh.write_text(MESH + "  again: {description: says it twice, route: [echo]}\n")

    code, output = running.up()

    assert code == 0, output
    assert "cdk deploy" in output
    expected: dict[str, object] = {}
    exec(deployed, expected)
    assert run_echo(running, "order-of-changes") == expected["echo"]({})  # type: ignore[operator]
    running.mesh.write_text(MESH)


def test_up_after_down_restores_the_cloud_under_the_same_keys_and_addresses(running: Asya) -> None:
    asya, connection = running, running.folder.connection.read_text()
    run_echo(asya, "before")
    assert asya.run("down")[0] == 0
    change_handler(asya, 4)

    code, output = asya.up()

    assert code == 0, output
    assert "cdk" not in output
    assert asya.folder.connection.read_text() == connection
    assert run_echo(asya, "after") == {"value": 4}
    with pytest.raises(ClientError, match="not authorized to perform: sqs:ReceiveMessage"):
        asya.client("sqs").receive_message(QueueUrl=f"{json.loads(connection)['endpoint_url']}/0/asya-tiny-echo")
    tasks = asya.client("dynamodb").scan(TableName=json.loads(connection)["tasks_table"])["Items"]
    assert "before" not in {item["pk"]["S"].rpartition("#")[2] for item in tasks}


def test_down_stops_the_workers_of_a_killed_ministack(running: Asya) -> None:
    record = next(each for each in read_records(running.folder) if each.name == "ministack")
    process_message(running)
    assert len(cloud_processes(running.folder)) > 2  # a worker beside the two servers
    process = record.process()
    assert process is not None
    process.kill()
    until(lambda: record.process() is None, SECONDS, "the end of MiniStack")
    assert running.run("status")[0] == 1

    code, output = running.run("down")

    assert code == 0, output
    until(lambda: not cloud_processes(running.folder), SECONDS, "the end of the workers")
    assert not running.folder.connection.exists()
    assert not running.folder.deployed.exists()
    assert not running.folder.temporary.exists()
    assert (running.folder.logs / "ministack.log").exists()
    assert running.run("down")[0] == 0
