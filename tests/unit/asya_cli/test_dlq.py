"""`asya dlq` with an emulated SQS and a fake gateway: scans and redrives (`protocol §12`)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import boto3
import msgspec
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from typer.testing import CliRunner

from asya.dead_letters.aws import queue as dead_letter_queue
from asya.protocol.codec import encode
from asya.protocol.errors import ErrorInfo
from asya.protocol.slices import SetDue, encode_message
from asya.tasks.view import TaskView
from asya_cli import dlq
from asya_cli.dead_letters import DeadLetters, Filter
from asya_cli.errors import CommandError
from asya_cli.main import app
from asya_cli.mesh_client import ConflictError, OversizedEnvelopeError
from tests.doubles.envelopes import message, status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.dead_letters.redrive import Reopening
    from asya.protocol.envelope import Envelope

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@dataclass
class Mesh:
    """A client with the queues of a mesh and the answers of its gateway."""

    client: Any
    tasks: dict[str, TaskView] = field(default_factory=dict)
    generations: dict[str, int | ConflictError] = field(default_factory=dict)
    requests: list[Reopening] = field(default_factory=list)
    namespace: str = "shop"
    limit: int = 1_000_000
    offloaded_to: list[str] = field(default_factory=list)

    @property
    def connection(self) -> Mesh:
        return self

    def sqs(self) -> Any:
        return self.client

    def task(self, envelope_id: str) -> TaskView | None:
        return self.tasks.get(envelope_id)

    def reopen(self, envelope_id: str, request: Reopening) -> int | None:
        self.requests.append(request)
        answer = self.generations.get(envelope_id)
        if isinstance(answer, ConflictError):
            raise answer
        return answer

    def sendable(self, envelope: Envelope, queue_url: str) -> bytes:
        if len(encode(envelope)) < self.limit:
            return encode(envelope)
        if len(bytes(envelope.payload)) < self.limit // 2:
            raise OversizedEnvelopeError("too large even without its payload")
        self.offloaded_to.append(queue_url.rpartition("/")[2])
        return encode(msgspec.structs.replace(envelope, payload=msgspec.Raw(b"null")))

    def put(self, actor: str, body: bytes) -> None:
        url = self.client.get_queue_url(QueueName=f"asya-shop-{actor}-dlq")["QueueUrl"]
        self.client.send_message(QueueUrl=url, MessageBody=body.decode())

    def receive(self, queue: str) -> list[Any]:
        """Receive the messages of a queue, decoded if they are JSON objects. They are hidden afterwards."""
        url = self.client.get_queue_url(QueueName=f"asya-shop-{queue}")["QueueUrl"]
        messages = self.client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(each["Body"]) if each["Body"][:1] == "{" else each["Body"] for each in messages]


@pytest.fixture
def mesh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mesh]:
    with mock_aws():
        client = boto3.Session("testing", "testing", region_name="eu-west-1").client("sqs")
        for queue in ("infer", "post", "x-sink", "x-dispatch"):
            client.create_queue(QueueName=f"asya-shop-{queue}")
            client.create_queue(QueueName=f"asya-shop-{queue}-dlq", tags={"asya:namespace": "shop"})
        mesh = Mesh(client)
        monkeypatch.setattr(dlq, "client", lambda *_: mesh)
        monkeypatch.setattr(dead_letter_queue, "_WAIT_SECONDS", 0)
        yield mesh


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["dlq", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def dead_letters(mesh: Mesh) -> DeadLetters:
    return DeadLetters(mesh)  # type: ignore[arg-type]


@pytest.mark.rule("12.redrive")
def test_a_dead_letter_is_sent_in_the_generation_that_its_task_was_reopened_in(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 3
    mesh.put("infer", message(status=status(phase="retrying", attempt=2)))
    assert "infer  env-1  sent again in generation 3" in run("redrive", "infer")
    (sent,) = mesh.receive("infer")
    assert (sent["id"], sent["headers"]["x-asya-generation"]) == ("env-1", 3)
    assert (sent["status"]["phase"], sent["status"]["attempt"]) == ("pending", 1)
    assert mesh.receive("infer-dlq") == []
    assert [(each.generation, each.position, each.slice, each.force) for each in mesh.requests] == [(0, 1, None, False)]


def test_an_envelope_that_grew_too_large_gets_a_claim_check(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message(payload={"text": "x" * 2000}))
    mesh.limit = 1500
    assert "sent again in generation 1" in run("redrive", "infer")
    assert [each["payload"] for each in mesh.receive("infer")] == [None]
    assert set(mesh.offloaded_to) == {"asya-shop-infer"}


def test_an_oversized_envelope_stays_without_a_reopening_and_the_scan_continues(mesh: Mesh) -> None:
    mesh.generations["env-2"] = 1
    mesh.put("infer", message(headers={"long": "x" * 2000}))
    mesh.put("infer", message(id="env-2"))
    mesh.limit = 1500
    output = run("redrive", "infer", code=1)
    assert "too large even without its payload" in output
    assert "infer  env-2  sent again in generation 1" in output
    assert len(mesh.requests) == 1


def test_a_refused_dead_letter_stays_and_the_reason_is_printed(mesh: Mesh) -> None:
    mesh.generations["env-1"] = ConflictError("it succeeded")
    mesh.generations["env-2"] = 1
    mesh.put("infer", message())
    mesh.put("infer", message(id="env-2"))
    output = run("redrive", "infer", code=1)
    assert "env-1  refused: it succeeded" in output
    assert "1 sent again, 1 refused" in output
    assert [each["id"] for each in mesh.receive("infer-dlq")] == ["env-1"]
    assert [each["id"] for each in mesh.receive("infer")] == ["env-2"]


@pytest.mark.parametrize("headers", [{}, {"x-asya-mesh-status": "off"}])
def test_after_the_deadline_a_redrive_is_refused_with_or_without_reports(mesh: Mesh, headers: dict[str, str]) -> None:
    mesh.put("infer", message(headers=headers, status=status(deadline_at="2026-01-01T00:00:00Z")))
    assert "refused: its deadline has passed; `asya replay env-1`" in run("redrive", "infer", "--force", code=1)
    assert (len(mesh.receive("infer-dlq")), mesh.receive("infer")) == (1, [])


def test_force_is_part_of_the_request(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message())
    run("redrive", "--force")
    assert [each.force for each in mesh.requests] == [True]


def test_the_request_identifies_a_slice(mesh: Mesh) -> None:
    header = {"actor": "f", "set_id": "s", "origin_id": "o", "slice_index": 1, "slice_count": 2, "aggregation_key": ""}
    mesh.generations["env-1"] = 1
    mesh.put("infer", message(headers={"x-asya-fan-in": header}))
    run("redrive")
    assert mesh.requests[0].slice is not None
    assert (mesh.requests[0].slice.set_id, mesh.requests[0].slice.slice_index, mesh.requests[0].slice.origin_id) == (
        "s",
        1,
        "o",
    )


@pytest.mark.parametrize("headers", [{}, {"x-asya-mesh-status": "off"}])
def test_without_a_record_the_generation_grows_by_one(mesh: Mesh, headers: dict[str, str]) -> None:
    mesh.put("infer", message(headers={"x-asya-generation": 4, **headers}))
    run("redrive", "infer")
    assert [sent["headers"]["x-asya-generation"] for sent in mesh.receive("infer")] == [5]
    assert len(mesh.requests) == (0 if headers else 1)


def test_an_ended_envelope_is_sent_unchanged(mesh: Mesh) -> None:
    body = message(status=status(phase="succeeded"), headers={"x-asya-generation": 1})
    mesh.put("x-sink", body)
    assert "sent again unchanged" in run("redrive", "x-sink")
    assert mesh.receive("x-sink") == [json.loads(body)]
    assert mesh.requests == []


@pytest.mark.parametrize(
    ("actor", "body"),
    [("infer", b"junk"), ("x-dispatch", b'{"actor": "a"}'), ("post", encode_message(SetDue(set_id="s")))],
)
def test_other_messages_are_sent_unchanged(mesh: Mesh, actor: str, body: bytes) -> None:
    mesh.put(actor, body)
    run("redrive", actor)
    assert len(mesh.receive(actor)) == 1
    assert (mesh.receive(f"{actor}-dlq"), mesh.requests) == ([], [])


def test_a_dry_run_sends_nothing(mesh: Mesh) -> None:
    mesh.put("infer", message())
    assert "would be sent again" in run("redrive", "--dry-run")
    assert (mesh.requests, mesh.receive("infer")) == ([], [])
    assert len(mesh.receive("infer-dlq")) == 1


def test_the_limit_holds_over_all_queues(mesh: Mesh) -> None:
    for number in range(4):
        mesh.generations[f"env-{number}"] = 1
        mesh.put("infer" if number % 2 else "post", message(id=f"env-{number}"))
    assert "3 sent again" in run("redrive", "--limit", "3")
    assert len(mesh.receive("infer-dlq")) + len(mesh.receive("post-dlq")) == 1


def test_filters_by_id_and_by_error_of_envelope_or_task(mesh: Mesh) -> None:
    error = {"type": "ValueError", "message": "No Such File", "mro": [], "traceback": ""}
    mesh.put("infer", message(id="a", status=status(phase="retrying", error=error)))
    mesh.put("infer", message(id="b"))
    mesh.put("infer", message(id="c"))
    mesh.tasks["b"] = TaskView(
        id="b",
        status="failed",
        reason="DeliveryExhausted",
        progress_percent=1,
        created_at="",
        updated_at="",
        generation=0,
        error=ErrorInfo(type="DeliveryExhausted", message="infer did not finish"),
    )

    def matches(**criteria: str) -> list[str]:
        with dead_letters(mesh).scan("infer", Filter(**criteria)) as letters:
            return sorted(letter.id for letter in letters)

    assert matches(text="no such file") == ["a"]
    assert matches(text="did not finish") == ["b"]
    assert matches(text="deliveryexhausted") == ["b"]
    assert matches(id="c") == ["c"]
    assert matches(id="c", text="no such file") == []
    assert matches() == ["a", "b", "c"]


def test_a_crash_between_the_reopening_and_the_sending_leaves_the_dead_letter(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message())
    broken = dead_letters(mesh)
    monkeypatch.setattr(broken, "_send", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        redrive_all(broken)
    run("redrive", "infer")
    assert [sent["headers"]["x-asya-generation"] for sent in mesh.receive("infer")] == [1]
    assert mesh.receive("infer-dlq") == []


@pytest.mark.rule("12.redrive")
def test_a_crash_between_the_sending_and_the_deletion_sends_twice_in_the_same_generation(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message())
    broken = dead_letters(mesh)
    delete, mesh.client.delete_message = mesh.client.delete_message, failing
    with pytest.raises(CommandError):
        redrive_all(broken)
    mesh.client.delete_message = delete
    run("redrive", "infer")
    assert [sent["headers"]["x-asya-generation"] for sent in mesh.receive("infer")] == [1, 1]
    assert mesh.receive("infer-dlq") == []


def redrive_all(queues: DeadLetters) -> None:
    with queues.scan("infer", Filter()) as letters:
        for letter in letters:
            queues.redrive(letter, force=False, now=NOW)


def failing(**_: Any) -> Any:
    raise ClientError({"Error": {"Code": "ServiceUnavailable", "Message": "on demand"}}, "DeleteMessage")


def test_a_dead_letter_that_returns_during_the_scan_is_skipped(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message())
    queues = dead_letters(mesh)
    with queues.scan("infer", Filter()) as letters:
        for letter in letters:
            queues.redrive(letter, force=False, now=NOW)
            mesh.put("infer", message(headers={"x-asya-generation": 1}))
    assert len(mesh.requests) == 1
    assert len(mesh.receive("infer-dlq")) == 1


def test_list_and_show_leave_the_messages(mesh: Mesh) -> None:
    mesh.put("infer", message())
    assert "env-1" in run("list")
    assert '"payload": {' in run("show", "env-1")
    assert "no dead letters" in run("list", "post")
    assert len(mesh.receive("infer-dlq")) == 1


def test_only_the_meshs_own_queues_are_scanned(mesh: Mesh) -> None:
    mesh.client.create_queue(QueueName="asya-shop-test-infer-dlq", tags={"asya:namespace": "shop-test"})
    mesh.put("test-infer", message())
    mesh.put("infer", message())
    assert dead_letters(mesh).actors() == ["infer"]


def test_an_actor_that_does_not_exist_is_an_error(mesh: Mesh) -> None:
    with pytest.raises(CommandError, match="no dead-letter queue for an actor 'nobody'"):
        run_raising("list", "nobody")


def test_messages_hidden_by_another_reader_are_reported(mesh: Mesh) -> None:
    mesh.put("infer", message())
    mesh.receive("infer-dlq")
    assert "infer: 1 more hidden by another reader" in run("list")


def run_raising(*arguments: str) -> None:
    CliRunner().invoke(app, ["dlq", *arguments], standalone_mode=False, catch_exceptions=False)
