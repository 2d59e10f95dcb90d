"""`asya dlq`, over an emulated SQS and a status endpoint of the test: the loop of a redrive (`protocol §12`)."""

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
from asya_cli.dead_letters import DeadLetters, Wanted
from asya_cli.errors import CommandError
from asya_cli.main import app
from asya_cli.mesh_client import NotSendableError, RefusedError
from tests.doubles.envelopes import message, status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.dead_letters.redrive import Reopening
    from asya.protocol.envelope import Envelope

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@dataclass
class Mesh:
    """A mesh's queues, and what its status endpoint says."""

    client: Any
    tasks: dict[str, TaskView] = field(default_factory=dict)
    generations: dict[str, int | RefusedError] = field(default_factory=dict)
    asked: list[Reopening] = field(default_factory=list)
    namespace: str = "shop"
    limit: int = 1_000_000
    put_aside: list[str] = field(default_factory=list)

    @property
    def connection(self) -> Mesh:
        return self

    def sqs(self) -> Any:
        return self.client

    def task(self, envelope_id: str) -> TaskView | None:
        return self.tasks.get(envelope_id)

    def reopen(self, envelope_id: str, asked: Reopening) -> int | None:
        self.asked.append(asked)
        answer = self.generations.get(envelope_id)
        if isinstance(answer, RefusedError):
            raise answer
        return answer

    def sendable(self, envelope: Envelope, queue_url: str) -> bytes:
        if len(encode(envelope)) < self.limit:
            return encode(envelope)
        if len(bytes(envelope.payload)) < self.limit // 2:
            raise NotSendableError("too large even without its payload")
        self.put_aside.append(queue_url.rpartition("/")[2])
        return encode(msgspec.structs.replace(envelope, payload=msgspec.Raw(b"null")))

    def put(self, actor: str, body: bytes) -> None:
        url = self.client.get_queue_url(QueueName=f"asya-shop-{actor}-dlq")["QueueUrl"]
        self.client.send_message(QueueUrl=url, MessageBody=body.decode())

    def lying(self, queue: str) -> list[Any]:
        """What lies in a queue, as JSON where it is; it is hidden afterwards."""
        url = self.client.get_queue_url(QueueName=f"asya-shop-{queue}")["QueueUrl"]
        found = self.client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(each["Body"]) if each["Body"][:1] == "{" else each["Body"] for each in found]


@pytest.fixture
def mesh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mesh]:
    with mock_aws():
        client = boto3.Session("testing", "testing", region_name="eu-west-1").client("sqs")
        for queue in ("infer", "post", "x-sink", "x-dispatch"):
            client.create_queue(QueueName=f"asya-shop-{queue}")
            client.create_queue(QueueName=f"asya-shop-{queue}-dlq", tags={"asya:namespace": "shop"})
        made = Mesh(client)
        monkeypatch.setattr(dlq, "client", lambda *_: made)
        monkeypatch.setattr(dead_letter_queue, "_WAIT_SECONDS", 0)
        yield made


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["dlq", *arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def office(mesh: Mesh) -> DeadLetters:
    return DeadLetters(mesh)  # type: ignore[arg-type]


@pytest.mark.rule("12.redrive")
def test_a_dead_letter_is_sent_in_the_generation_that_its_task_was_reopened_in(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 3
    mesh.put("infer", message(status=status(phase="retrying", attempt=2)))
    assert "infer  env-1  sent again in generation 3" in run("redrive", "infer")
    (sent,) = mesh.lying("infer")
    assert (sent["id"], sent["headers"]["x-asya-generation"]) == ("env-1", 3)
    assert (sent["status"]["phase"], sent["status"]["attempt"]) == ("pending", 1)
    assert mesh.lying("infer-dlq") == []
    assert [(each.generation, each.position, each.slice, each.force) for each in mesh.asked] == [(0, 1, None, False)]


def test_what_has_grown_beyond_a_message_leaves_its_payload_behind(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message(payload={"text": "x" * 2000}))
    mesh.limit = 1500
    assert "sent again in generation 1" in run("redrive", "infer")
    assert [each["payload"] for each in mesh.lying("infer")] == [None]
    assert set(mesh.put_aside) == {"asya-shop-infer"}


def test_what_no_message_can_hold_stays_before_its_task_is_reopened_and_the_next_goes(mesh: Mesh) -> None:
    mesh.generations["env-2"] = 1
    mesh.put("infer", message(headers={"long": "x" * 2000}))
    mesh.put("infer", message(id="env-2"))
    mesh.limit = 1500
    said = run("redrive", "infer", code=1)
    assert "too large even without its payload" in said
    assert "infer  env-2  sent again in generation 1" in said
    assert len(mesh.asked) == 1


def test_what_is_refused_stays_and_says_why(mesh: Mesh) -> None:
    mesh.generations["env-1"] = RefusedError("it succeeded")
    mesh.generations["env-2"] = 1
    mesh.put("infer", message())
    mesh.put("infer", message(id="env-2"))
    output = run("redrive", "infer", code=1)
    assert "env-1  refused: it succeeded" in output
    assert "1 sent again, 1 refused" in output
    assert [each["id"] for each in mesh.lying("infer-dlq")] == ["env-1"]
    assert [each["id"] for each in mesh.lying("infer")] == ["env-2"]


@pytest.mark.parametrize("headers", [{}, {"x-asya-mesh-status": "off"}])
def test_past_its_deadline_it_is_for_a_replay_recorded_or_not(mesh: Mesh, headers: dict[str, str]) -> None:
    mesh.put("infer", message(headers=headers, status=status(deadline_at="2026-01-01T00:00:00Z")))
    assert "refused: its deadline has passed; replay it" in run("redrive", "infer", "--force", code=1)
    assert (len(mesh.lying("infer-dlq")), mesh.lying("infer")) == (1, [])


def test_force_is_handed_on(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message())
    run("redrive", "--force")
    assert [each.force for each in mesh.asked] == [True]


def test_a_slice_says_which_it_is(mesh: Mesh) -> None:
    header = {"actor": "f", "set_id": "s", "origin_id": "o", "slice_index": 1, "slice_count": 2, "aggregation_key": ""}
    mesh.generations["env-1"] = 1
    mesh.put("infer", message(headers={"x-asya-fan-in": header}))
    run("redrive")
    assert mesh.asked[0].slice is not None
    assert (mesh.asked[0].slice.set_id, mesh.asked[0].slice.slice_index, mesh.asked[0].slice.origin_id) == ("s", 1, "o")


@pytest.mark.parametrize("headers", [{}, {"x-asya-mesh-status": "off"}])
def test_without_a_record_there_is_nothing_to_reopen(mesh: Mesh, headers: dict[str, str]) -> None:
    mesh.put("infer", message(headers={"x-asya-generation": 4, **headers}))
    run("redrive", "infer")
    assert [sent["headers"]["x-asya-generation"] for sent in mesh.lying("infer")] == [5]
    assert len(mesh.asked) == (0 if headers else 1)


def test_what_has_ended_is_sent_as_it_is_so_that_its_end_is_written_down(mesh: Mesh) -> None:
    body = message(status=status(phase="succeeded"), headers={"x-asya-generation": 1})
    mesh.put("x-sink", body)
    assert "sent again as it is" in run("redrive", "x-sink")
    assert mesh.lying("x-sink") == [json.loads(body)]
    assert mesh.asked == []


@pytest.mark.parametrize(
    ("actor", "body"),
    [("infer", b"junk"), ("x-dispatch", b'{"actor": "a"}'), ("post", encode_message(SetDue(set_id="s")))],
)
def test_what_is_no_envelope_is_sent_as_it_is(mesh: Mesh, actor: str, body: bytes) -> None:
    mesh.put(actor, body)
    run("redrive", actor)
    assert len(mesh.lying(actor)) == 1
    assert (mesh.lying(f"{actor}-dlq"), mesh.asked) == ([], [])


def test_a_dry_run_moves_nothing(mesh: Mesh) -> None:
    mesh.put("infer", message())
    assert "would be sent again" in run("redrive", "--dry-run")
    assert (mesh.asked, mesh.lying("infer")) == ([], [])
    assert len(mesh.lying("infer-dlq")) == 1


def test_the_limit_holds_over_all_queues(mesh: Mesh) -> None:
    for number in range(4):
        mesh.generations[f"env-{number}"] = 1
        mesh.put("infer" if number % 2 else "post", message(id=f"env-{number}"))
    assert "3 sent again" in run("redrive", "--limit", "3")
    assert len(mesh.lying("infer-dlq")) + len(mesh.lying("post-dlq")) == 1


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

    def found(**wanted: str) -> list[str]:
        with office(mesh).look("infer", Wanted(**wanted)) as letters:
            return sorted(letter.id for letter in letters)

    assert found(text="no such file") == ["a"]
    assert found(text="did not finish") == ["b"]
    assert found(text="deliveryexhausted") == ["b"]
    assert found(id="c") == ["c"]
    assert found(id="c", text="no such file") == []
    assert found() == ["a", "b", "c"]


def test_a_death_between_the_reopening_and_the_sending_leaves_the_letter(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message())
    broken = office(mesh)
    monkeypatch.setattr(broken, "_send", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        redrive_all(broken)
    run("redrive", "infer")
    assert [sent["headers"]["x-asya-generation"] for sent in mesh.lying("infer")] == [1]
    assert mesh.lying("infer-dlq") == []


@pytest.mark.rule("12.redrive")
def test_a_death_between_the_sending_and_the_removal_sends_twice_in_the_same_generation(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message())
    broken = office(mesh)
    delete, mesh.client.delete_message = mesh.client.delete_message, failing
    with pytest.raises(CommandError):
        redrive_all(broken)
    mesh.client.delete_message = delete
    run("redrive", "infer")
    assert [sent["headers"]["x-asya-generation"] for sent in mesh.lying("infer")] == [1, 1]
    assert mesh.lying("infer-dlq") == []


def redrive_all(at_work: DeadLetters) -> None:
    with at_work.look("infer", Wanted()) as letters:
        for letter in letters:
            at_work.redrive(letter, force=False, now=NOW)


def failing(**_: Any) -> Any:
    raise ClientError({"Error": {"Code": "ServiceUnavailable", "Message": "on demand"}}, "DeleteMessage")


def test_what_comes_back_at_once_is_not_sent_again_and_again(mesh: Mesh) -> None:
    mesh.generations["env-1"] = 1
    mesh.put("infer", message())
    looking = office(mesh)
    with looking.look("infer", Wanted()) as letters:
        for letter in letters:
            looking.redrive(letter, force=False, now=NOW)
            mesh.put("infer", message(headers={"x-asya-generation": 1}))
    assert len(mesh.asked) == 1
    assert len(mesh.lying("infer-dlq")) == 1


def test_list_and_show_take_nothing_away(mesh: Mesh) -> None:
    mesh.put("infer", message())
    assert "env-1" in run("list")
    assert '"payload": {' in run("show", "env-1")
    assert "no dead letters" in run("list", "post")
    assert len(mesh.lying("infer-dlq")) == 1


def test_only_the_meshs_own_queues_are_looked_at(mesh: Mesh) -> None:
    mesh.client.create_queue(QueueName="asya-shop-test-infer-dlq", tags={"asya:namespace": "shop-test"})
    mesh.put("test-infer", message())
    mesh.put("infer", message())
    assert office(mesh).actors() == ["infer"]


def test_an_actor_that_does_not_exist_is_told(mesh: Mesh) -> None:
    with pytest.raises(CommandError, match="no dead-letter queue of an actor 'nobody'"):
        run_raising("list", "nobody")


def test_what_somebody_else_looks_at_is_told(mesh: Mesh) -> None:
    mesh.put("infer", message())
    mesh.lying("infer-dlq")
    assert "infer: 1 more cannot be seen just now" in run("list")


def run_raising(*arguments: str) -> None:
    CliRunner().invoke(app, ["dlq", *arguments], standalone_mode=False, catch_exceptions=False)
