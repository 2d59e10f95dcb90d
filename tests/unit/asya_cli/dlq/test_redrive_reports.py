"""`asya dlq reports replay`: the dead letters of reports go back to their queues by the gateway (`protocol §4`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from typer.testing import CliRunner

from asya.capabilities.dead_letters.aws import letters as dead_letter_queue
from asya_cli.errors import CommandError
from asya_cli.main import app
from asya_cli.options import MeshOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.function.hop import Arrival

REPORT, END = '[{"id": "a", "status": "processing"}]', '[{"id": "a", "status": "succeeded"}]'


@dataclass
class Sqs:
    """SQS with some calls that fail, and a list of the calls in their order."""

    client: Any
    failures: dict[str, int] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.client, name)
        if name != "delete_message":
            return call

        def record(**arguments: Any) -> Any:
            self.calls.append(name)
            if self.calls.count(name) == self.failures.get(name):
                raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, name)
            return call(**arguments)

        return record


@dataclass
class Mesh:
    """A client with the queues of a mesh."""

    queues: Sqs
    namespace: str = "shop"

    @property
    def connection(self) -> Mesh:
        return self

    def sqs(self) -> Any:
        return self.queues

    def redrive(self, actor: str, message: Arrival, *, force: bool) -> None:
        """Send the message to its queue, as the gateway does."""
        assert not force
        assert message.sender
        self.queues.calls.append("redrive")
        if self.queues.calls.count("redrive") == self.queues.failures.get("redrive"):
            raise CommandError("the gateway answered 503: its queue rejected it")
        self.put(actor, message.body.decode())

    def _url(self, queue: str) -> str:
        return str(self.queues.get_queue_url(QueueName=f"asya-shop-{queue}")["QueueUrl"])

    def put(self, queue: str, body: str) -> None:
        self.queues.client.send_message(QueueUrl=self._url(queue), MessageBody=body)

    def bodies(self, queue: str) -> list[str]:
        """The messages of a queue that are visible. They are hidden afterwards."""
        received = self.queues.receive_message(QueueUrl=self._url(queue), MaxNumberOfMessages=10)
        return sorted(each["Body"] for each in received.get("Messages", []))


@pytest.fixture
def mesh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mesh]:
    with mock_aws():
        client = boto3.Session("testing", "testing", region_name="eu-west-1").client("sqs")
        for queue in ("infer", "x-reports", "x-ends"):
            client.create_queue(QueueName=f"asya-shop-{queue}")
            client.create_queue(QueueName=f"asya-shop-{queue}-dlq", tags={"asya:namespace": "shop"})
        mesh = Mesh(Sqs(client))
        monkeypatch.setattr(MeshOptions, "client", lambda _: mesh)
        monkeypatch.setattr(dead_letter_queue, "WAIT_SECONDS", 0)
        yield mesh


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["dlq", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def problem(*arguments: str) -> CommandError:
    result = CliRunner().invoke(app, ["dlq", *arguments])
    assert isinstance(result.exception, CommandError), result.output
    return result.exception


@pytest.mark.rule("4.report-queues.dead-letters")
def test_dead_letters_of_reports_go_back_to_their_queues(mesh: Mesh) -> None:
    mesh.put("x-reports-dlq", REPORT)
    mesh.put("x-ends-dlq", END)
    mesh.put("x-ends-dlq", f"{END} ")
    mesh.put("infer-dlq", "an envelope")
    output = run("reports", "replay")
    assert "x-reports: 1 sent again" in output
    assert "x-ends: 2 sent again" in output
    assert (mesh.bodies("x-reports"), mesh.bodies("x-ends")) == ([REPORT], [END, f"{END} "])
    assert (mesh.bodies("x-reports-dlq"), mesh.bodies("x-ends-dlq")) == ([], [])
    assert (mesh.bodies("infer"), mesh.bodies("infer-dlq")) == ([], ["an envelope"])


@pytest.mark.rule("4.report-queues.dead-letters")
def test_a_dead_letter_is_deleted_only_after_the_gateway_has_sent_it(mesh: Mesh) -> None:
    for number in range(3):
        mesh.put("x-ends-dlq", str(number))
    mesh.queues.failures["redrive"] = 2
    error = problem("reports", "replay")
    assert "cannot send the dead letter" in error.problem
    assert "answered 503" in error.problem
    assert "1 sent again" in error.advice
    assert mesh.queues.calls == ["redrive", "delete_message", "redrive"]
    # Those that were received are visible again at once.
    assert len(mesh.bodies("x-ends-dlq")) == 2
    assert len(mesh.bodies("x-ends")) == 1


@pytest.mark.slow
def test_a_dead_letter_that_stays_after_its_send_is_sent_twice(mesh: Mesh) -> None:
    mesh.put("x-ends-dlq", END)
    mesh.queues.failures["delete_message"] = 1
    assert "cannot delete the dead letter" in problem("reports", "replay").problem
    assert "x-ends: 1 sent again" in run("reports", "replay")
    assert mesh.bodies("x-ends") == [END, END]
    assert mesh.bodies("x-ends-dlq") == []


def test_a_dry_run_sends_and_deletes_nothing(mesh: Mesh) -> None:
    mesh.put("x-ends-dlq", END)
    output = run("reports", "replay", "--dry-run")
    assert "x-ends: 1 would be sent again" in output
    assert "x-reports: no dead letters" in output
    assert mesh.queues.calls == []
    assert mesh.bodies("x-ends-dlq") == [END]


def test_characters_that_sqs_changed_stay_as_they_are(mesh: Mesh) -> None:
    body = '{"text": "ä☃ \\ud800"}'
    mesh.put("x-reports-dlq", body)
    run("reports", "replay")
    assert mesh.bodies("x-reports") == [body]


def test_a_mesh_of_an_older_version_has_no_such_queues(mesh: Mesh) -> None:
    mesh.namespace = "old"
    assert "has no queue asya-old-x-reports" in problem("reports", "replay").problem


def test_the_list_counts_reports_apart_from_envelopes(mesh: Mesh) -> None:
    mesh.put("x-ends-dlq", END)
    output = run("list")
    assert "no dead letters" in output
    assert "x-ends: dead letters of reports; `asya dlq reports replay --state .asya` sends them again" in output
    assert mesh.bodies("x-ends-dlq") == [END]


@pytest.mark.parametrize("command", [("redrive", "x-ends"), ("list", "x-reports"), ("show", "a", "x-ends")])
def test_no_other_command_reads_reports_as_envelopes(mesh: Mesh, command: tuple[str, ...]) -> None:
    mesh.put("x-ends-dlq", END)
    error = problem(*command)
    assert "reports, which are no envelopes" in error.problem
    assert "asya dlq reports replay" in error.advice
    assert mesh.bodies("x-ends-dlq") == [END]


def test_a_redrive_of_everything_leaves_reports_alone(mesh: Mesh) -> None:
    mesh.put("x-ends-dlq", END)
    assert "0 sent again, 0 refused" in run("redrive")
    assert mesh.bodies("x-ends-dlq") == [END]
