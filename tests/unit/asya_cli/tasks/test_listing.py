"""`asya list`, `asya cancel` and the timeline of `asya status`, with a fake gateway."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from typer.testing import CliRunner

from asya.client import mesh_client
from asya.client.mesh_client import MeshClient
from asya_cli.main import app
from asya_cli.options import MeshOptions
from asya_cli.tasks import records
from tests.doubles.tasks import at

TASK = {"status": "running", "progress_percent": 33, "created_at": "2026-11-20T09:00:00.000000Z", "generation": 0,
        "updated_at": "2026-11-20T09:00:05.000000Z", "actor": "clean-flights"}  # fmt: skip


@dataclass
class Answering:
    """Answers calls from a list, and records them."""

    answers: list[tuple[int, Any]]
    calls: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, _mesh: MeshClient, method: str, path: str, body: bytes, _media_type: str) -> tuple[int, bytes]:
        self.calls.append((method, path))
        code, content = self.answers.pop(0)
        return code, msgspec.json.encode(content) if content is not None else b""


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Answering:
    fake = Answering([])
    monkeypatch.setattr(mesh_client.MeshClient, "exchange", lambda *args: fake(*args))  # noqa: PLW0108 - bound like a method
    monkeypatch.setattr(records, "RECORD_SECONDS", 0.0)
    monkeypatch.setattr(MeshOptions, "client", lambda _: MeshClient(connection=None))  # type: ignore[arg-type]
    monkeypatch.setattr(MeshClient, "stored", lambda *_: None)
    return fake


def run(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(args))
    return result.exit_code, result.output


def test_tasks_are_listed_over_several_pages(answering: Answering) -> None:
    answering.answers = [
        (200, {"items": [TASK | {"id": f"t{number}"} for number in range(100)], "next_cursor": "c1"}),
        (200, {"items": [TASK | {"id": "t100"}]}),
    ]
    code, output = run("list", "--limit", "150", "--status", "running", "--parent", "p/1")
    assert code == 0
    assert [line.split()[0] for line in output.splitlines()] == ["task", *(f"t{number}" for number in range(101))]
    queries = [parse_qs(urlsplit(path).query) for _, path in answering.calls]
    assert queries == [
        {"status": ["running"], "parent": ["p/1"], "limit": ["100"]},
        {"status": ["running"], "parent": ["p/1"], "limit": ["100"], "cursor": ["c1"]},
    ]


def test_a_list_that_may_be_cut_says_so(answering: Answering) -> None:
    page = {"items": [TASK | {"id": f"t{number}"} for number in range(3)]}
    answering.answers = [(200, page), (200, page)]
    cut = CliRunner().invoke(app, ["list", "-n", "3"])
    assert (len(cut.stdout.splitlines()), cut.stderr) == (4, "the newest 3; -n 30 shows up to 30\n")
    assert CliRunner().invoke(app, ["list", "-n", "4"]).stderr == ""


def test_tasks_as_json(answering: Answering) -> None:
    answering.answers = [(200, {"items": [TASK | {"id": "t"}]})]
    code, output = run("list", "--json")
    assert (code, msgspec.json.decode(output)["id"]) == (0, "t")


def test_no_tasks_at_all(answering: Answering) -> None:
    answering.answers = [(200, {"items": []})]
    assert run("list") == (0, "no tasks\n")


def test_cancel_prints_the_status_of_the_task(answering: Answering) -> None:
    answering.answers = [(204, None), (200, TASK | {"id": "a b", "status": "canceled"})]
    assert run("cancel", "a b") == (0, "canceled\n")
    assert answering.calls[0] == ("DELETE", "/api/v1/mesh/a%20b")


def test_cancel_fails_without_a_task(answering: Answering) -> None:
    answering.answers = [(404, {"error": {"code": "not_found", "message": "there is no task"}})]
    assert run("cancel", "t")[0] == 1


UNREAD = {
    "name": "clean-flights", "kind": "handler", "waiting": 4, "in_flight": 0, "dead_letters": 0,
    "not_read": {"reason": "event source mapping disabled", "repair": "aws lambda …"},
}  # fmt: skip


def test_the_timeline_of_a_task(answering: Answering) -> None:
    hop = {"generation": 0, "position": 0, "attempt": 1, "actor": "inspect-dataset",
           "received_at": f"{at(0):%Y-%m-%dT%H:%M:%S.%fZ}"}  # fmt: skip
    answering.answers = [
        (200, TASK | {"id": "t"}),
        (200, {"set": None}),
        (200, {"items": []}),  # its children
        (200, {"namespace": "flights", "at": "", "edges": [], "tools": [], "actors": [UNREAD]}),
        (200, {"items": [hop | {"completed_at": hop["received_at"], "duration_ms": 1234.5}], "next_cursor": "c"}),
        (200, {"items": [hop | {"position": 1, "attempt": 2, "actor": "clean-flights"}]}),
    ]
    code, output = run("status", "t", "--timeline")
    assert code == 0
    *_, why, repair, first, second = output.splitlines()
    assert (why.split()[:2], repair.strip()) == (["not", "read"], "aws lambda …")
    assert why.endswith("clean-flights: event source mapping disabled")
    assert first.split() == ["0", "2026-11-20T09:00:00.000", "inspect-dataset", "1,234", "ms"]
    assert second.split()[-5:] == ["clean-flights", "(attempt", "2)", "not", "completed"]
