"""`asya replay`, and the client's handling of the gateway's answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from typer.testing import CliRunner

from asya.capabilities.dead_letters.replay import ReplayRequest
from asya.client.errors import ConflictError, MeshError
from asya.client.mesh_client import MeshClient
from asya.function.hop import Arrival
from asya_cli.main import app
from asya_cli.options import MeshOptions

CALLS: list[tuple[str, str, Any]] = []
LETTER = Arrival(b'{"id": "a"}', "m-1", datetime(2026, 11, 20, 12, tzinfo=UTC), sender="AIDABOB")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client whose status endpoint answers what the test says."""
    made = MeshClient(None)  # type: ignore[arg-type]
    CALLS.clear()

    def answering(status: int, answer: object) -> MeshClient:
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()

        def call(_: MeshClient, method: str, path: str, request: bytes, _media_type: str) -> tuple[int, bytes]:
            CALLS.append((method, path, json.loads(request or b"null")))
            return status, body

        monkeypatch.setattr(MeshClient, "exchange", call)
        monkeypatch.setattr(MeshOptions, "client", lambda _: made)
        return made

    return answering


STARTED = {"id": "new", "replay_of": "a/b", "source": "s3://bucket/results/failed/x.json"}


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        ([], {}),
        (["--from", "0"], {"hop": 0}),
        (["--from-checkpoint", "2"], {"checkpoint": 2}),
        (["--failed-only"], {"failed_only": True}),
    ],
)
def test_the_new_id_is_printed_and_nothing_else_on_standard_output(
    client: Any, arguments: list[str], body: dict[str, object]
) -> None:
    client(201, STARTED)
    done = CliRunner().invoke(app, ["replay", "a/b", *arguments])
    assert (done.exit_code, done.stdout) == (0, "new\n")
    assert "s3://bucket/results/failed/x.json" in done.stderr
    assert [("POST", "/api/v1/mesh/a%2Fb/replay", body)] == CALLS


@pytest.mark.parametrize(
    ("slices", "line"),
    [
        (
            {"total": 4, "copied": 2, "again": [2, 4]},
            "at least 2 of 4 results are copied; at most these slices run again: 2, 4\n",
        ),
        (
            {"total": 40, "copied": 3, "again": list(range(4, 41))},
            "at least 3 of 40 results are copied; at most these slices run again: "
            + ", ".join(map(str, range(4, 24)))
            + " and 17 more\n",
        ),
        ({"total": 2, "copied": 0, "again": [1, 2]}, "at most these slices run again: 1, 2\n"),
        ({"total": 4, "copied": 4, "again": []}, "all 4 results are copied\n"),
        ({"total": 4, "copied": 0, "again": None}, "all 4 slices run again\n"),
        ({"total": None, "copied": 0, "again": None}, "all slices run again\n"),
    ],
)
def test_the_slices_that_run_again_are_named(client: Any, slices: dict[str, Any], line: str) -> None:
    client(201, STARTED | {"slices": slices})
    done = CliRunner().invoke(app, ["replay", "a/b", "--failed-only"])
    assert (done.exit_code, done.stdout) == (0, "new\n")
    assert done.stderr.endswith(line)


@pytest.mark.parametrize("others", [["--from", "1", "--from-checkpoint", "1"], ["--from", "1", "--failed-only"]])
def test_the_starts_exclude_each_other(client: Any, others: list[str]) -> None:
    client(201, STARTED)
    done = CliRunner().invoke(app, ["replay", "a", *others])
    assert isinstance(done.exception, MeshError)
    assert CALLS == []


def test_a_conflict_has_the_message_of_the_gateway(client: Any) -> None:
    mesh = client(409, {"error": {"code": "nothing_to_replay", "message": "it can be replayed from hop 2"}})
    with pytest.raises(ConflictError, match=r"^it can be replayed from hop 2$"):
        mesh.replay("a", ReplayRequest())
    with pytest.raises(ConflictError):
        mesh.redrive("infer", LETTER, force=False)


@pytest.mark.parametrize(
    ("status", "copy", "advice"),
    [
        ("canceled", "input", "`asya replay 'a b' --from 0 --state .asya` runs it again from there."),
        ("succeeded", "checkpoint", "`asya replay 'a b' --from-checkpoint 0 --state .asya` runs it again from there."),
        ("succeeded", None, "`asya result 'a b' --state .asya` prints its result."),
        ("running", "input", "`asya status 'a b' --state .asya` shows it."),
    ],
)
def test_a_task_that_has_not_failed_names_the_command_that_replays_it(
    client: Any, monkeypatch: pytest.MonkeyPatch, status: str, copy: str | None, advice: str
) -> None:
    times = dict.fromkeys(("created_at", "updated_at"), "2026-11-20T09:00:00.000000Z")
    task = {"id": "a b", "status": status, "progress_percent": 50, "generation": 0, **times}
    hop = {"hop": 0, "actor": "read", "generation": 0, "before": True, "after": True, "size": 1, "copy": copy}

    def call(_: MeshClient, method: str, path: str, *_others: object) -> tuple[int, bytes]:
        if method == "POST":
            return 409, json.dumps({"error": {"code": "nothing_to_replay", "message": "it has not failed"}}).encode()
        return 200, json.dumps({"items": [hop]} if path.endswith("/payloads") else task).encode()

    client(200, {})
    monkeypatch.setattr(MeshClient, "exchange", call)
    refused = CliRunner().invoke(app, ["replay", "a b"]).exception
    assert isinstance(refused, ConflictError)
    assert (refused.problem, refused.advice) == ("it has not failed", advice)


def test_a_task_that_does_not_exist(client: Any) -> None:
    mesh = client(404, {"error": {"code": "not_found", "message": "there is no task"}})
    with pytest.raises(MeshError, match="the gateway knows no actor 'infer'"):
        mesh.redrive("infer", LETTER, force=False)
    assert mesh.task("a") is None
    with pytest.raises(MeshError, match="there is no task 'a'"):
        mesh.replay("a", ReplayRequest())


def test_the_gateway_chooses_the_generation(client: Any) -> None:
    mesh = client(200, {"id": "a", "generation": 7})
    assert mesh.redrive("infer", LETTER, force=True) == 7
    query = "actor=infer&message_id=m-1&sender=AIDABOB&sent_at=2026-11-20T12%3A00%3A00.000000Z&force=true"
    assert [("POST", f"/api/v1/mesh/redrive?{query}", {"id": "a"})] == CALLS


@pytest.mark.parametrize(
    ("status", "answer", "message"),
    [
        (403, {"error": {"code": "forbidden", "message": "only operators"}}, "answered 403: only operators"),
        (403, {"message": "Forbidden"}, 'answered 403: {"message": "Forbidden"}'),
        (503, b"<html>", "answered 503: <html>"),
        (200, b"<html>", "sent an unexpected answer"),
    ],
)
def test_other_answers_are_part_of_the_error(client: Any, status: int, answer: object, message: str) -> None:
    with pytest.raises(MeshError, match=message.replace("{", r"\{")):
        client(status, answer).redrive("infer", LETTER, force=False)
