"""`asya dlq` with an emulated SQS and a fake gateway: scans and redrives (`protocol §12`)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from typer.testing import CliRunner

from asya.capabilities.dead_letters.aws import letters as dead_letter_queue
from asya.client.errors import ConflictError
from asya.function.hop import PROBLEM
from asya.protocol.errors import ErrorInfo
from asya.protocol.slices import SetDue, encode_message
from asya.tasks.view import TaskView
from asya_cli.dlq import redrive
from asya_cli.dlq.letters import DeadLetters, Filter
from asya_cli.errors import CommandError, ExitCode
from asya_cli.main import app
from asya_cli.options import MeshOptions
from tests.doubles.envelopes import message, status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.function.hop import Arrival


@dataclass
class Mesh:
    """A client with the queues of a mesh and the answers of its gateway."""

    client: Any
    tasks: dict[str, TaskView] = field(default_factory=dict)
    generations: dict[str, int | CommandError] = field(default_factory=dict)
    requests: list[tuple[str, Arrival, bool]] = field(default_factory=list)
    namespace: str = "shop"

    @property
    def connection(self) -> Mesh:
        return self

    def sqs(self) -> Any:
        return self.client

    def task(self, envelope_id: str) -> TaskView | None:
        return self.tasks.get(envelope_id)

    def redrive(self, actor: str, message: Arrival, *, force: bool) -> int | None:
        """Send the message to its actor, as the gateway does."""
        answer = self.generations.get(_id_of(message.body))
        if isinstance(answer, Exception):
            raise answer
        self.requests.append((actor, message, force))
        url = self.client.get_queue_url(QueueName=f"asya-shop-{actor}")["QueueUrl"]
        self.client.send_message(QueueUrl=url, MessageBody=message.body.decode())
        return answer

    def put(self, actor: str, body: bytes) -> None:
        url = self.client.get_queue_url(QueueName=f"asya-shop-{actor}-dlq")["QueueUrl"]
        self.client.send_message(QueueUrl=url, MessageBody=body.decode())

    def receive(self, queue: str) -> list[Any]:
        """Receive the messages of a queue, decoded if they are JSON objects. They are hidden afterwards."""
        url = self.client.get_queue_url(QueueName=f"asya-shop-{queue}")["QueueUrl"]
        messages = self.client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(each["Body"]) if each["Body"][:1] == "{" else each["Body"] for each in messages]


def _id_of(body: bytes) -> str:
    try:
        return str(json.loads(body).get("id", ""))
    except ValueError:
        return ""


@pytest.fixture
def mesh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mesh]:
    with mock_aws():
        client = boto3.Session("testing", "testing", region_name="eu-west-1").client("sqs")
        for queue in ("infer", "post", "x-sink", "x-dispatch", "x-triggers"):
            client.create_queue(QueueName=f"asya-shop-{queue}")
            client.create_queue(QueueName=f"asya-shop-{queue}-dlq", tags={"asya:namespace": "shop"})
        mesh = Mesh(client)
        monkeypatch.setattr(MeshOptions, "client", lambda _: mesh)
        monkeypatch.setattr(dead_letter_queue, "WAIT_SECONDS", 0)
        yield mesh


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["dlq", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def dead_letters(mesh: Mesh) -> DeadLetters:
    return DeadLetters(mesh)  # type: ignore[arg-type]


@pytest.mark.rule("12.redrive")
def test_the_gateway_gets_the_dead_letter_as_it_lies_there(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 3
    body = message(status=status(phase="retrying", attempt=2))
    mesh.put("infer", body)
    assert "infer  env-1  sent again in generation 3" in run("redrive", "infer")
    ((actor, sent, is_forced),) = mesh.requests
    assert (actor, sent.body, is_forced) == ("infer", body, False)
    assert sent.message_id
    assert sent.sender
    assert mesh.receive("infer-dlq") == []


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


def test_force_is_part_of_the_request(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message())
    run("redrive", "--force")
    assert [is_forced for _, _, is_forced in mesh.requests] == [True]


@pytest.mark.parametrize(
    ("actor", "body"),
    [("infer", b"junk"), ("x-dispatch", b'{"actor": "a"}'), ("post", encode_message(SetDue(set_id="s")))],
)
def test_a_message_without_a_generation_is_sent_unchanged(mesh: Mesh, actor: str, body: bytes) -> None:
    mesh.put(actor, body)
    assert "sent again unchanged" in run("redrive", actor)
    assert [(to, sent.body) for to, sent, _ in mesh.requests] == [(actor, body)]
    assert mesh.receive(f"{actor}-dlq") == []


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


def test_a_gateway_that_fails_leaves_the_dead_letter(mesh: Mesh) -> None:
    mesh.generations["env-1"] = CommandError("the gateway did not answer")
    mesh.put("infer", message())
    with pytest.raises(CommandError):
        redrive_all(dead_letters(mesh))
    assert len(mesh.receive("infer-dlq")) == 1


@pytest.mark.rule("12.redrive")
def test_a_dead_letter_that_was_not_deleted_is_redriven_again(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message())
    broken = dead_letters(mesh)
    delete, mesh.client.delete_message = mesh.client.delete_message, failing
    with pytest.raises(CommandError):
        redrive_all(broken)
    mesh.client.delete_message = delete
    run("redrive", "infer")
    assert [actor for actor, _, _ in mesh.requests] == ["infer", "infer"]
    assert mesh.receive("infer-dlq") == []


def redrive_all(queues: DeadLetters) -> None:
    with queues.scan("infer", Filter()) as letters:
        for letter in letters:
            queues.redrive(letter, force=False)


def failing(**_: Any) -> Any:
    raise ClientError({"Error": {"Code": "ServiceUnavailable", "Message": "on demand"}}, "DeleteMessage")


def test_a_dead_letter_that_returns_during_the_scan_is_skipped(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message())
    queues = dead_letters(mesh)
    with queues.scan("infer", Filter()) as letters:
        for letter in letters:
            queues.redrive(letter, force=False)
            mesh.put("infer", message(headers={"x-asya-generation": 1}))
    assert len(mesh.requests) == 1
    assert len(mesh.receive("infer-dlq")) == 1


@pytest.mark.slow
def test_list_and_show_leave_the_messages(mesh: Mesh) -> None:
    mesh.put("infer", message())
    assert "env-1" in run("list")
    row = json.loads(run("list", "--json"))
    assert (row["actor"], row["id"], row["task"]) == ("infer", "env-1", "no record")
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


def test_a_command_in_a_refusal_names_the_mesh(mesh: Mesh) -> None:
    mesh.generations["env-1"] = ConflictError("its deadline has passed; `asya replay env-1` starts a task")
    mesh.put("infer", message())
    assert "`asya replay env-1 --state .asya` starts a task" in run("redrive", "infer", code=1)


def test_messages_hidden_by_another_reader_are_reported(mesh: Mesh) -> None:
    mesh.put("infer", message())
    mesh.receive("infer-dlq")
    listed = run("list")
    assert "infer: 1 hidden by another reader" in listed
    assert "no dead letters" not in listed
    with pytest.raises(CommandError, match="1 hidden by another reader") as shown:
        run_raising("show", "env-1")
    assert (shown.value.code, shown.value.advice) == (ExitCode.NOT_FOUND, "Try again in 5 minutes.")


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_an_id_without_a_dead_letter_is_not_found(mesh: Mesh, options: tuple[str, ...]) -> None:
    mesh.put("infer", message(id="another"))
    with pytest.raises(CommandError, match="there is no dead letter 'env-1'") as redriven:
        run_raising("redrive", "infer", "--id", "env-1", *options)
    assert (redriven.value.code, mesh.requests) == (ExitCode.NOT_FOUND, [])


@pytest.mark.slow
def test_since_selects_by_the_time_of_the_message(mesh: Mesh) -> None:
    mesh.put("infer", message())
    assert "1 dead letter selected" in run("redrive", "--since", "1h", "--dry-run")
    assert "0 dead letters selected" in run("redrive", "--since", "2999-01-01T00:00:00Z", "--dry-run")
    assert "no dead letters" in run("list", "--since", "2999-01-01T00:00:00Z")


@pytest.mark.parametrize(("answer", "sent"), [("y\n", 2), ("n\n", 0)])
def test_a_terminal_is_asked_before_many_are_sent(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch, answer: str, sent: int
) -> None:
    for name in ("a", "b"):
        mesh.generations[name] = 1
        mesh.put("infer", message(id=name))
    monkeypatch.setattr(redrive, "asks", lambda *, yes: not yes)
    done = CliRunner().invoke(app, ["dlq", "redrive", "infer"], input=answer)
    assert "redrive 2 dead letters?" in done.stderr
    assert len(mesh.requests) == sent
    assert len(mesh.receive("infer-dlq")) == 2 - sent  # those that stay are visible again
    assert isinstance(done.exception, CommandError) == (sent == 0)


def test_yes_asks_nothing(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message())
    monkeypatch.setattr(redrive, "asks", lambda *, yes: not yes)
    assert "1 sent again, 0 refused" in run("redrive", "--yes")


def test_ctrl_c_says_what_was_sent_and_the_others_stay(mesh: Mesh) -> None:
    for name in ("a", "b", "c"):
        mesh.generations[name] = 1
        mesh.put("infer", message(id=name))
    send = mesh.redrive

    def interrupted(actor: str, letter: Arrival, *, force: bool) -> int | None:
        if len(mesh.requests) == 1:
            raise KeyboardInterrupt
        return send(actor, letter, force=force)

    mesh.redrive = interrupted  # type: ignore[method-assign]
    assert "1 sent again, 0 refused; the others stay in their queues" in run("redrive", code=130)
    assert len(mesh.receive("infer-dlq")) == 2


def test_json_has_a_line_for_each_letter_refused_ones_too(mesh: Mesh) -> None:
    mesh.generations |= {"env-1": ConflictError("it succeeded"), "env-2": 4}
    mesh.put("infer", message())
    mesh.put("infer", message(id="env-2"))
    done = CliRunner().invoke(app, ["dlq", "redrive", "--json"])
    lines = {line["id"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert (done.exit_code, lines["env-1"]["problem"], lines["env-2"]["generation"]) == (1, "it succeeded", 4)


def run_raising(*arguments: str) -> None:
    CliRunner().invoke(app, ["dlq", *arguments], standalone_mode=False, catch_exceptions=False)


@pytest.mark.rule("16.failures")
@pytest.mark.slow
def test_16_a_letter_of_x_triggers_says_why_it_starts_nothing(mesh: Mesh) -> None:
    """It is found by that text, and a redrive sends it again as it was."""
    url = mesh.client.get_queue_url(QueueName="asya-shop-x-triggers-dlq")["QueueUrl"]
    problem = {PROBLEM: {"DataType": "String", "StringValue": "the mesh has no trigger 'nightly'"}}
    body = '{"trigger": "nightly", "slot": "2026-11-25T01:00:00Z"}'
    mesh.client.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=problem)
    infer = mesh.client.get_queue_url(QueueName="asya-shop-infer-dlq")["QueueUrl"]
    given_up = {PROBLEM: {"DataType": "String", "StringValue": "5 starts did not come to an end"}}
    mesh.client.send_message(QueueUrl=infer, MessageBody="{}", MessageAttributes=given_up)
    listed = CliRunner().invoke(app, ["dlq", "list", "--json", "--error", "did not come to an end"])
    assert [json.loads(each)["error"] for each in listed.stdout.splitlines()] == [
        "DeliveryExhausted: 5 starts did not come to an end"
    ]
    listed = CliRunner().invoke(app, ["dlq", "list", "--json", "--error", "no trigger"])
    (line,) = [json.loads(each) for each in listed.stdout.splitlines()]
    assert (line["actor"], line["error"]) == ("x-triggers", "NotStarted: the mesh has no trigger 'nightly'")
    assert CliRunner().invoke(app, ["dlq", "redrive", "x-triggers"]).exit_code == 0
    assert mesh.receive("x-triggers") == [json.loads(body)]
    assert mesh.receive("x-triggers-dlq") == []
