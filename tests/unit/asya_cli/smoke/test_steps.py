"""The steps of `asya smoke`, on a mesh that answers at once."""

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.client.mesh_client import StoredObject
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.run_progress import RunNote
from asya.tasks.listing import TimelineEntry
from asya.tasks.view import TaskView
from asya_cli.errors import CommandError
from asya_cli.smoke.steps import Smoke, measured

RUN = "asya.shop.x-index.0000000007"
COMMIT = "runs/x-index/0000000007/attempts/first/commit.json"


@dataclass
class MemoryMesh:
    """A mesh in which every envelope ends at once, with `status`.

    It is the connection too, with its clients of SQS and S3.
    """

    queues: tuple[str, ...] = ("x-checkpoint", "x-index")
    status: Any = "succeeded"
    error: ErrorInfo | None = None
    python: str = "3.12.11"
    endpoint_url: str | None = None
    stored_object: StoredObject | None = field(default_factory=lambda: StoredObject("s3://bucket/one.json", b"{}"))
    sent: list[Envelope] = field(default_factory=list)
    called: list[tuple[str, bytes]] = field(default_factory=list)
    gateway_url: str = "https://gateway"
    namespace: str = "shop"
    region: str = "eu-central-1"

    @property
    def connection(self) -> Any:
        return self

    def sqs(self) -> Any:
        return self

    def s3(self) -> Any:
        page = {"Contents": [{"Key": COMMIT.replace("commit", "manifest")}, {"Key": COMMIT}]}
        return SimpleNamespace(get_paginator=lambda _: SimpleNamespace(paginate=lambda **_: [page]))

    def get_queue_url(self, *, QueueName: str) -> dict[str, str]:  # noqa: N803
        actor = QueueName.removeprefix("asya-shop-")
        if actor not in self.queues:
            raise ClientError({"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue"}}, "GetQueueUrl")
        return {"QueueUrl": f"https://sqs.eu-central-1.amazonaws.com/123456789012/{QueueName}"}

    def tasks(self, **_: Any) -> list[TaskView]:
        return []

    def send(self, envelope: Envelope) -> str:
        self.sent.append(envelope)
        return "message"

    def call_tool(self, name: str, arguments: bytes) -> str:
        self.called.append((name, arguments))
        return "task-of-the-tool"

    def task(self, envelope_id: str) -> TaskView:
        return TaskView(
            id=envelope_id, status=self.status, progress_percent=0, actor="x-checkpoint", error=self.error,
            result_uri="s3://bucket/one.json", created_at="", updated_at="", generation=0,
        )  # fmt: skip

    def stored(self, _id: str, _uri: str | None) -> StoredObject | None:
        return self.stored_object

    def timeline(self, _id: str) -> list[TimelineEntry]:
        run = RunNote(run_id=RUN, job_run_id="00abc", state="SUCCESS", at="", envelopes=1)
        return [TimelineEntry(generation=0, position=0, attempt=1, actor="x-index", run=run)]

    def fetch(self, uri: str) -> bytes:
        assert uri == f"s3://asya-shop-123456789012-eu-central-1/{COMMIT}"
        return json.dumps({"run_id": RUN, "python": self.python}).encode()


def smoke(mesh: MemoryMesh, *, is_python_pinned: bool = False) -> Smoke:
    client: Any = mesh
    return Smoke(client, "0123", heavy_seconds=60, is_python_pinned=is_python_pinned)


def test_the_light_envelope_passes_no_user_code() -> None:
    mesh = MemoryMesh()
    step = smoke(mesh).light()
    assert (step.state, step.detail) == ("ok", "smoke-light-0123: x-checkpoint → x-sink, s3://bucket/one.json")
    [envelope] = mesh.sent
    assert (envelope.id, envelope.route.curr, envelope.route.next) == ("smoke-light-0123", "x-checkpoint", ())


def test_a_mesh_without_x_checkpoint_is_told_how_to_have_it() -> None:
    step = smoke(MemoryMesh(queues=("x-index",))).light()
    assert (step.state, "crew: routable: [x-checkpoint]" in step.detail) == ("skipped", True)


def test_a_result_that_is_missing_in_s3_is_a_failure() -> None:
    step = smoke(MemoryMesh(stored_object=None)).light()
    assert step.state == "failed"
    assert "its object is missing: s3://bucket/one.json" in step.detail


def test_a_failed_task_is_shown_with_its_error_and_the_next_commands() -> None:
    step = smoke(MemoryMesh(status="failed", error=ErrorInfo(type="ValueError", message="no"))).light()
    assert (step.state, step.detail) == ("failed", "smoke-light-0123 failed at x-checkpoint: ValueError: no")
    assert "asya status smoke-light-0123 --timeline" in step.advice
    assert "asya dlq list" in step.advice


def test_the_index_run_names_its_python() -> None:
    mesh = MemoryMesh()
    step = smoke(mesh).index()
    assert step.state == "ok"
    assert step.detail == f"smoke-index-0123: {RUN}, Python 3.12.11"
    [envelope] = mesh.sent
    assert envelope.route.curr == "x-index"
    assert len(json.loads(bytes(envelope.payload))["days"]) == 1


def test_another_python_than_the_pinned_one_is_a_failure() -> None:
    step = smoke(MemoryMesh(python="3.11.9"), is_python_pinned=True).index()
    assert (step.state, step.detail) == ("failed", f"{RUN} ran on Python 3.11.9, but the mesh selects 3.12")


@pytest.mark.parametrize("version", ["3.11.9", "3.120.1"])
def test_another_python_is_noted_where_none_is_pinned(version: str) -> None:
    step = smoke(MemoryMesh(python=version)).index()
    assert step.state == "ok"
    assert step.detail == f"smoke-index-0123: {RUN}, Python {version} (packages of jobs are installed for 3.12)"


def test_the_local_cloud_runs_jobs_on_the_python_of_the_machine() -> None:
    step = smoke(MemoryMesh(python="3.11.9", endpoint_url="http://127.0.0.1:1"), is_python_pinned=True).index()
    assert (step.state, step.detail) == ("ok", f"smoke-index-0123: {RUN}, Python 3.11.9")


def test_a_mesh_without_heavy_actors_has_no_index() -> None:
    step = smoke(MemoryMesh(queues=("x-checkpoint",))).index()
    assert step.state == "skipped"
    assert "no heavy actor" in step.detail


def test_a_tool_runs_the_own_actors() -> None:
    mesh = MemoryMesh()
    step = smoke(mesh).tool("analyse", b'{"n": 1}')
    assert (step.name, step.state) == ("analyse", "ok")
    assert step.detail == "task-of-the-tool: s3://bucket/one.json"
    assert mesh.called == [("analyse", b'{"n": 1}')]


def test_a_paused_tool_is_not_waited_for() -> None:
    step = smoke(MemoryMesh(status="paused")).tool("analyse", b"{}")
    assert (step.state, step.detail) == ("failed", "task-of-the-tool waits for an answer")
    assert "asya resume task-of-the-tool" in step.advice


def test_the_gateway_is_read_with_a_signed_call() -> None:
    assert smoke(MemoryMesh()).gateway().detail == "https://gateway"


def test_an_error_of_a_step_is_its_result() -> None:
    def fail() -> str:
        raise CommandError("the gateway answered 403", "You need execute-api:Invoke.")

    step = measured("gateway", fail)
    assert (step.state, step.detail, step.advice) == (
        "failed",
        "the gateway answered 403",
        "You need execute-api:Invoke.",
    )


def test_an_operator_who_may_not_read_the_files_of_runs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(_self: MemoryMesh, _uri: str) -> bytes:
        raise CommandError("cannot read the commit: AccessDenied")

    monkeypatch.setattr(MemoryMesh, "fetch", deny)
    step = smoke(MemoryMesh()).index()
    assert (step.state, step.detail) == (
        "ok",
        f"smoke-index-0123: {RUN}, Python unknown: cannot read the commit: AccessDenied",
    )


@pytest.mark.parametrize("body", ["", "not JSON"])
def test_a_commit_without_a_python_is_no_failure(body: str) -> None:
    mesh = MemoryMesh(python="")
    mesh.fetch = lambda _: body.encode()  # type: ignore[method-assign]
    step = smoke(mesh).index()
    assert step.state == "ok"
    assert "unknown" in step.detail
