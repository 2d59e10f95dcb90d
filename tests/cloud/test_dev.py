"""`asya dev` as an author uses it: a mesh that follows changes, and every command against it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from a2a.types import TaskPushNotificationConfig

from asya.client.connection import read_local
from asya.client.mesh_client import MeshClient
from asya.tasks.listing import TaskFilter
from asya_local.account import AccessKey, aws_client, read_keys
from asya_local.processes import cloud_processes
from asya_local.state_folder import StateFolder
from tests.cloud import test_gateway_a2a as a2a
from tests.cloud import test_gateway_mcp as mcp
from tests.cloud.callers import operator
from tests.cloud.deployed_cloud import TIMEOUT_SECONDS, DeployedCloud, until
from tests.console.process import running_ui
from tests.doubles import doors
from tests.interrupts import restore_interrupts
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.cloud

MESH = """
namespace: desk
code: handlers
jobs: jobs
actors:
  check: {handler: orders.check, env: {CURRENCY: EUR}, can_send_to: [approve, bill]}
  bill: {handler: orders.bill}
  gone: {handler: orders.gone, max_receives: 2}
  forks: {handler: orders.forks}
  orphans: {handler: orders.orphans, max_receives: 1, timeout: 5m, batch: {size: 1}}
  split: {handler: orders.split, can_send_to: [bill]}
  count: {spark: {job: lines.count}, access: [{bucket: data, read: "*"}]}
  approve:
    kind: pause
    pause: {prompt: "Ship it?", fields: [{name: approved, type: boolean, prompt: "Yes or no"}]}
gateway: {notification_hosts: [localhost]}
tools:
  order: {description: "Checks and bills an order", route: [check, bill]}
"""
TRIGGERS = """
triggers:
  landed: {route: [bill], s3: {bucket: data, prefix: landed/}, payload: {total: 1, key: "{key}"}}
  partner: {route: [bill], s3: {bucket: partner-files, suffix: .json}, payload: {total: 1, uri: "{uri}"}}
  ordered: {route: [bill], event: {source: [shop], bus: shop}, input: /detail}
"""
ORDERS = """
import os
import time
from asya import data, fan_out

def check(payload):
    print("checking", payload["id"])
    return {**payload, "currency": os.environ["CURRENCY"], "version": 1}

def bill(payload):
    return {**payload, "gross": payload["total"] * 2}

def gone(payload):
    os._exit(3)

def forks(payload):
    os.fork()
    return payload  # in both processes; only one of them may answer

def orphans(payload):
    if os.fork() == 0:
        time.sleep(600)  # must not keep the connection of its parent
    os._exit(1)

def split(payload):
    return fan_out(payload["orders"], to=["bill"], into="/bills")

def other(payload):
    return {**payload, "other": True}
"""
LINES = """
def count(spark, payload):
    return {**payload, "lines": spark.read.text(payload["uri"]).count(), "version": 1}
"""
FILES = {"mesh.yaml": MESH, "handlers/orders.py": ORDERS, "jobs/lines.py": LINES}


class Author:
    """An author with a mesh in a folder, and `asya dev` in a terminal."""

    def __init__(self, folder: Path, files: Mapping[str, str] = FILES) -> None:
        self.folder = folder
        for name in ("handlers", "jobs"):
            (folder / name).mkdir(exist_ok=True)
        for name, text in files.items():
            self.write(name, text)
        self.state = StateFolder.at(folder / ".asya")
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "asya_cli.main", "dev"],
            cwd=folder,
            env={**os.environ, "AWS_PROFILE": "no-such-profile", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=restore_interrupts,  # noqa: PLW1509 - no thread is running here
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.sees("Ctrl-C ends the mesh")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def edit(self, name: str, before: str, after: str) -> None:
        text = (self.folder / name).read_text()
        assert before in text
        self.write(name, text.replace(before, after))

    def sees(self, text: str, since: int = 0) -> None:
        """Wait until the terminal shows a text, since a number of lines."""

        def shown() -> bool | None:
            found = any(text in line for line in self.lines[since:])
            assert found or self.process.poll() is None, "\n".join(self.lines)
            return found or None

        until(shown, f"{text!r} on the terminal")

    def shown(self, text: str) -> int:
        """Return how many lines of the terminal have a text."""
        return sum(text in line for line in self.lines)

    def asya(self, *arguments: str, text: str = "") -> str:
        """Run another command in a second terminal; return its output."""
        result = subprocess.run(
            [sys.executable, "-m", "asya_cli.main", *arguments],
            cwd=self.folder,
            input=text,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        assert result.returncode == 0, result.stderr + result.stdout
        return result.stdout

    @property
    def cloud(self) -> DeployedCloud:
        return DeployedCloud(MeshClient(read_local(self.state.root)), self.state.root)

    def send(self, envelope_id: str, payload: Any, *route: str) -> None:
        curr, *after = route
        envelope = {"id": envelope_id, "payload": payload, "route": {"prev": [], "curr": curr, "next": after}}
        self.cloud.send_raw(curr, json.dumps(envelope))

    def result(self, envelope_id: str) -> Any:
        """Wait for the payload of a result."""
        task = self.cloud.wait_for_end(envelope_id)
        assert task.status == "succeeded", (task, "\n".join(self.lines))
        return self.cloud.wait_for_result(envelope_id)[1]["payload"]

    def end(self, number: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(number)
        self.process.wait(timeout=TIMEOUT_SECONDS)


@pytest.fixture(scope="module")
def author(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Author]:
    found = Author(tmp_path_factory.mktemp("author"))
    yield found
    found.end()
    assert not cloud_processes(found.state)


def test_a_route_runs_and_the_author_sees_it(author: Author) -> None:
    author.send("route-1", {"id": "7", "total": 3}, "check", "bill")
    expected = {"id": "7", "total": 3, "currency": "EUR", "version": 1, "gross": 6}
    assert author.result("route-1") == expected
    for text in ("checking 7", "check: route-1 took", "route-1 succeeded at bill"):
        author.sees(text)


def test_the_console_shows_the_mesh_of_the_author(author: Author) -> None:
    program = Path(sys.executable).with_name("asya")
    with running_ui(program, author.state.root, os.environ) as address:
        base, _, secret = address.partition("#secret=")

        def get(path: str) -> str:
            request = urllib.request.Request(base.rstrip("/") + path, headers={"x-asya-console-secret": secret})
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                return str(answer.read().decode())

        assert '"id":"route-1"' in get("/api/v1/mesh?status=succeeded")
        assert "checking 7" in get("/api/v1/operations/actors/check/logs")
        for part in ("mesh", "actors/count", "dead-letters", "runs"):
            assert json.loads(get(f"/api/v1/operations/{part}"))


def test_the_mesh_listens_for_its_user_alone(author: Author) -> None:
    """The processes of a mesh listen as docs/security.md says: on loopback, or on sockets that no other user can open."""
    page = (PROJECT / "docs" / "security.md").read_text()
    found = doors.doors(author.process.pid, *(process.pid for process in cloud_processes(author.state)))
    # These start with the first job; tests/cloud/test_emr_drivers.py looks at them.
    of_runs = doors.declared(page, "asya run") | {"drivers/driver.py", "asya_local.emr"}
    programs = {door.program for door in found}
    assert programs <= doors.declared(page, "asya dev")
    assert programs >= doors.declared(page, "asya dev") - of_runs
    assert {door.address for door in found if door.port} == {"127.0.0.1"}
    sockets = [Path(door.address) for door in found if not door.port]
    assert sockets
    assert all(socket.parent.stat().st_mode & 0o077 == 0 for socket in sockets)


def test_changed_code_answers(author: Author) -> None:
    author.edit("handlers/orders.py", '"version": 1', '"version": 2')
    author.sees("handlers loaded in")
    author.send("changed-1", {"id": "8", "total": 1}, "check")
    assert author.result("changed-1")["version"] == 2


def test_a_handler_that_cannot_be_imported_keeps_its_messages(author: Author) -> None:
    since = len(author.lines)
    author.edit("handlers/orders.py", "import os\n", "import os, no_such_module\n")
    author.sees("No module named 'no_such_module'", since)
    author.sees("requirements.txt of their folder names; 'no_such_module' is none of them", since)
    author.send("changed-2", {"id": "9", "total": 1}, "check")
    author.edit("handlers/orders.py", ", no_such_module", "")
    author.edit("handlers/orders.py", '"version": 2', '"version": 3')
    assert author.result("changed-2")["version"] == 3


def test_a_mistake_in_the_syntax_leaves_what_runs(author: Author) -> None:
    since = len(author.lines)
    author.edit("handlers/orders.py", '"version": 3}', '"version": 4')
    author.sees("'{' was never closed", since)
    author.sees("The mesh goes on as it was before.", since)
    author.send("changed-3", {"id": "9", "total": 1}, "check")
    assert author.result("changed-3")["version"] == 3
    since = len(author.lines)
    author.edit("handlers/orders.py", '"version": 4', '"version": 3}')
    author.sees("the mistake is gone", since)
    author.edit("handlers/orders.py", '"version": 3}', '"version": 4}')


def test_a_failure_is_shown_with_its_traceback(author: Author) -> None:
    author.send("failed-1", {"id": "7"}, "bill")
    assert author.cloud.wait_for_end("failed-1").status == "failed"
    author.sees("failed-1 failed at bill")
    assert author.shown("bill: failed-1 failed:") == 1
    assert author.shown('payload["total"] * 2') == author.shown("KeyError: 'total'") == 1


def test_a_line_that_a_handler_prints_begins_with_its_actor(author: Author) -> None:
    forged = "10:20:01 order-7 failed at charge"
    author.send("printed-1", {"id": f"7\n{forged}\r\x1b[2J\n", "total": 1}, "check")
    assert author.result("printed-1")["currency"] == "EUR"
    author.sees(f"check: {forged}\\x0d\\x1b[2J")
    assert [line for line in author.lines if line.startswith(forged)] == []


def test_a_batch_of_a_process_that_ends_comes_again_at_once(author: Author) -> None:
    author.send("gone-1", {}, "gone")
    assert author.cloud.wait_for_end("gone-1").reason == "DeliveryExhausted"
    assert sum("gone: its process ended" in line for line in author.lines) == 2
    author.send("after-1", {"id": "7", "total": 1}, "bill")
    assert author.result("after-1")["gross"] == 2


def test_a_process_that_a_handler_forks_has_no_part_in_its_call(author: Author) -> None:
    author.send("forks-1", {"id": "7"}, "forks")
    assert author.result("forks-1") == {"id": "7"}
    author.send("orphans-1", {}, "orphans")
    assert author.cloud.wait_for_end("orphans-1").reason == "DeliveryExhausted"
    author.send("forks-2", {"id": "8"}, "forks")
    assert author.result("forks-2") == {"id": "8"}
    author.send("forks-3", {"id": "9", "total": 1}, "bill")
    assert author.result("forks-3")["gross"] == 2


def test_a_folder_that_is_made_again_is_followed(author: Author) -> None:
    since, folder = len(author.lines), author.folder / "handlers"
    text = (folder / "orders.py").read_text()
    folder.rename(author.folder / "old")
    folder.mkdir()
    author.write("handlers/orders.py", text + "\n")
    author.sees("handlers loaded in", since)
    again = len(author.lines)
    author.edit("handlers/orders.py", 'return {**payload, "currency"', 'return {**payload, "again": True, "currency"')
    author.sees("handlers loaded in", again)
    author.send("again-1", {"id": "9", "total": 1}, "check")
    assert author.result("again-1")["again"] is True


@pytest.mark.rule("6.code.one-tree")
def test_a_handler_has_the_files_of_its_function_and_follows_links(author: Author) -> None:
    shared, handlers = author.folder / "shared", author.folder / "handlers"
    shared.mkdir()
    (shared / "rates.json").write_text("1")
    (handlers / ".env").write_text("KEY=secret")
    (handlers / "common").symlink_to("../shared")
    plain = '"gross": payload["total"] * 2}'
    files = '"rate": open("common/rates.json").read(), "files": sorted(os.listdir(os.path.dirname(__file__)))}'
    since = len(author.lines)
    author.edit("handlers/orders.py", plain, files)
    author.sees("handlers loaded in", since)
    author.send("files-1", {}, "bill")
    assert author.result("files-1") == {"rate": "1", "files": ["common", "mesh.json", "orders.py"]}
    since = len(author.lines)
    author.write("shared/rates.json", "22")
    author.sees("handlers loaded in", since)
    author.send("files-2", {}, "bill")
    assert author.result("files-2")["rate"] == "22"
    since = len(author.lines)
    author.edit("handlers/orders.py", files, plain)
    author.sees("handlers loaded in", since)


def test_a_mesh_with_a_job_changes_as_often_as_its_author_likes(author: Author) -> None:
    for number in range(2, 9):  # a policy has five versions
        since = len(author.lines)
        author.edit("mesh.yaml", f"max_receives: {number}", f"max_receives: {number + 1}")
        author.sees("mesh loaded in", since)
    author.edit("mesh.yaml", "max_receives: 9", "max_receives: 2")


def test_the_mesh_file_is_followed(author: Author) -> None:
    since = len(author.lines)
    author.edit("mesh.yaml", "actors:\n", "actors:\n  other: {handlr: orders.other}\n")
    author.sees("handlr", since)
    author.edit("mesh.yaml", "handlr", "handler")
    author.sees("mesh loaded in", since)
    author.send("other-1", {"id": "7", "total": 2}, "other", "bill")
    assert author.result("other-1") == {"id": "7", "total": 2, "other": True, "gross": 4}


def test_a_pause_a_set_and_a_tool(author: Author) -> None:
    author.send("paused-1", {"id": "7", "total": 2}, "check", "approve", "bill")
    author.send("set-1", {"orders": [{"total": 1}, {"total": 2}]}, "split", "x-fan-in")
    assert [bill["gross"] for bill in author.result("set-1")["bills"]] == [2, 4]
    author.sees("paused-1 paused at approve: asya resume paused-1 --pause 20")
    author.asya("resume", "paused-1", "--input", '{"approved": true}')
    assert author.result("paused-1")["approved"] is True
    assert author.result(author.cloud.mesh.call_tool("order", b'{"id": "7", "total": 5}'))["gross"] == 10


@pytest.mark.rule("16.objects", "16.objects.existing", "16.events")
def test_16_new_objects_and_events_start_tasks(author: Author) -> None:
    """Triggers that the author adds to a running mesh: on its own bucket, on another one, and on a bus."""
    since = len(author.lines)
    author.edit("mesh.yaml", "tools:\n", TRIGGERS + "tools:\n")
    author.sees("mesh loaded in", since)
    cloud = author.cloud
    cloud.mesh.upload("landed/a b.json", b"{}")
    s3, events = (aws_client(name, str(cloud.mesh.connection.endpoint_url), root(author)) for name in ("s3", "events"))
    s3.put_object(Bucket="partner-files", Key="in/b.json", Body=b"{}")
    s3.put_object(Bucket="partner-files", Key="in/b.csv", Body=b"{}")
    events.put_events(
        Entries=[{"Source": "shop", "DetailType": "Placed", "Detail": '{"total": 4}', "EventBusName": "shop"}]
    )

    def started(trigger: str) -> Any:
        [found] = until(
            lambda: list(cloud.mesh.iter_tasks(TaskFilter(owner=f"trigger:{trigger}"))) or None, f"a task of {trigger}"
        )
        return author.result(found.id)

    assert started("landed") == {"total": 1, "key": "landed/a b.json", "gross": 2}
    assert started("partner") == {"total": 1, "uri": "s3://partner-files/in/b.json", "gross": 2}
    assert started("ordered") == {"total": 4, "gross": 8}


def root(author: Author) -> AccessKey:
    return read_keys(author.state.keys)["root"]


def test_commands_work_against_it(author: Author) -> None:
    envelope_id = author.asya("send", "-", "--actor", "check", text='{"id": "cli", "total": 1}').strip()
    author.result(envelope_id)
    assert "succeeded" in author.asya("status", envelope_id)
    assert '"version"' in author.asya("result", envelope_id, "--payload")
    assert envelope_id in author.asya("list")
    assert "ministack" in author.asya("local", "status")
    author.asya("dlq", "list")
    author.asya("job", "list")


def test_operators_read_lines_numbers_and_dead_letters(author: Author) -> None:
    caller = operator(author.cloud)

    def get(path: str) -> Any:
        status, content = caller.call("GET", f"/api/v1/operations/{path}")
        assert status == 200, (path, content)
        return content

    lines = [each["line"] for each in get("logs/failed-1")["items"]]
    assert any(line.startswith("bill: failed-1 failed:") and "KeyError" in line for line in lines), lines
    of_actor = [each["line"] for each in get("actors/check/logs")["items"]]
    assert any("check: route-1 took" in line for line in of_actor)
    assert any(line.startswith("check: checking ") for line in of_actor), of_actor  # what the handler prints
    assert "check: checking " in author.asya("logs", "check")
    assert "bill: failed-1 failed:" in author.asya("logs", "failed-1")
    numbers = {actor["name"]: actor for actor in get("mesh")["actors"]}
    assert numbers["gone"]["dead_letters"] == 1
    assert numbers["count"]["runs"]["is_drained"] is False
    assert [each["id"] for each in get("actors/bill")["recent_errors"]] == ["failed-1"]
    # The function that reports dead letters may be reading the queue.
    (letter,) = until(lambda: get("dead-letters?actor=gone")["items"] or None, "the dead letter to be visible")
    assert (letter["id"], letter["task"]) == ("gone-1", "failed")
    assert get("runs")["items"] == []
    status, kept = caller.call("GET", "/api/v1/mesh/failed-1/payloads/0")
    assert (status, json.loads(kept["before"]["text"])) == (200, {"id": "7"})


def test_the_official_clients_of_models_and_agents_call_it(author: Author) -> None:
    caller = operator(author.cloud)

    async def talk() -> None:
        async with mcp.connected(mcp.read_example(author.folder), caller) as client:
            result = await mcp.ended(client, await client.call_tool("order", {"id": "mcp", "total": 2}))
            assert result.structured_content["gross"] == 4
        async with a2a.connected(caller) as agent:
            request = a2a.calling("order", {"id": "a2a", "total": 3})
            request.configuration.task_push_notification_config.CopyFrom(TaskPushNotificationConfig(url=url))
            task = await a2a.at_rest(agent, await a2a.sent(agent, request))
            assert a2a.result_of(task)["gross"] == 6

    with a2a.listening() as (url, notifications):
        a2a.run(talk())
        until(lambda: notifications or None, "a push notification")


def test_a_job_follows_changes_and_shows_its_traceback(author: Author, tmp_path: Path) -> None:
    text = tmp_path / "order.txt"
    text.write_text("a\nb\n")
    author.asya("data", "put", str(text), "order.txt")
    uri = f"s3://{author.cloud.mesh.connection.data.bucket}/{author.cloud.mesh.connection.data.prefix}order.txt"
    since = len(author.lines)
    author.edit("jobs/lines.py", '"version": 1', '"version": 2')
    author.sees("jobs loaded in", since)
    author.send("job-1", {"uri": uri, "total": 1}, "count", "bill")
    author.send("job-2", {"uri": 7}, "count")
    assert author.result("job-1") == {"uri": uri, "total": 1, "lines": 2, "version": 2, "gross": 2}
    assert author.cloud.wait_for_end("job-2").status == "failed"
    author.sees("asya_spark: job-1 (", since)  # what jobs print
    author.sees("job-2 failed at count")
    author.sees('spark.read.text(payload["uri"])')
    assert author.shown("job-2 failed at count") == author.shown('spark.read.text(payload["uri"])') == 1


def test_only_the_operator_calls_the_gateway(author: Author) -> None:
    url = author.cloud.mesh.connection.gateway_url
    with urllib.request.urlopen(f"{url}/health") as response:
        assert json.load(response) == {"status": "ok"}
    for headers in (
        {},
        {"Authorization": "AWS4-HMAC-SHA256 Credential=AKIAX/20260101/us-east-1/execute-api/aws4_request"},
    ):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(f"{url}/api/v1/mesh", headers=headers))
        assert refused.value.code == 403
    # Who may call nothing does not learn which paths there are.
    with pytest.raises(urllib.error.HTTPError) as unknown:
        urllib.request.urlopen(f"{url}/nowhere")
    assert unknown.value.code == 403


def test_a_killed_dev_leaves_nothing_to_the_next_one_and_a_closed_terminal_nothing(tmp_path: Path) -> None:
    first = Author(tmp_path)
    address = first.cloud.mesh.connection
    survivors = cloud_processes(first.state)
    first.end(signal.SIGKILL)
    assert survivors

    second = Author(tmp_path)
    try:
        assert not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in survivors)
        assert second.cloud.mesh.connection.gateway_url == address.gateway_url
        assert second.cloud.mesh.connection.endpoint_url == address.endpoint_url
        second.send("again-1", {"id": "7", "total": 3}, "check", "bill")
        assert second.result("again-1")["gross"] == 6
    finally:
        for _ in range(3):  # the system and the shell send one each
            second.process.send_signal(signal.SIGHUP)
        second.process.wait(timeout=TIMEOUT_SECONDS)
    assert not cloud_processes(second.state)
    assert not second.state.connection.exists()
