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

from asya_local.accounts import aws_client
from asya_local.keys import AccessKey
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


def test_a_second_up_deploys_the_changes(running: Asya) -> None:
    before = read_records(running.folder)
    (running.mesh.parent / "handlers" / "echo.py").write_text(
        "def echo(payload):\n    return {**payload, 'new': True}\n"
    )

    code, output = running.up()

    assert code == 0, output
    assert read_records(running.folder) == before


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
    assert not running.folder.temporary.exists()
    assert (running.folder.logs / "ministack.log").exists()
    assert running.run("down")[0] == 0
