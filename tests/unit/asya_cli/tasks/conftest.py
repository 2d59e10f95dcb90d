"""A fake gateway for the commands about many tasks: it has records, and answers as the protocol says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import pytest

from asya.client.mesh_client import MeshClient
from asya.tasks.failures import group_of, merged
from asya.tasks.listing import read_filter
from asya.tasks.view import TaskView
from asya_cli.options import MeshOptions

Answer = tuple[int, Any]


def failed(task_id: str, minute: int, error: str, *, actor: str = "bill", **more: object) -> dict[str, Any]:
    """A failed task, created in this minute of an hour."""
    kind, _, message = error.partition(": ")
    moment = f"2026-11-20T09:{minute:02d}:00.000000Z"
    return {
        "id": task_id, "status": "failed", "progress_percent": 33, "actor": actor, "generation": 0,
        "reason": "RuntimeError", "error": {"type": kind, "message": message},
        "created_at": moment, "updated_at": moment, **more,
    }  # fmt: skip


def retried(task_id: str, minute: int, error: str, *, next_at: str | None = "2026-11-20T10:00:00Z") -> dict[str, Any]:
    """A running task whose second attempt of five failed."""
    task = failed(task_id, minute, error)
    retry = {"attempt": 2, "max_attempts": 5, "error": task.pop("error"), "failed_at": task["updated_at"]}
    del task["reason"]
    return task | {"status": "running", "attempt": 2, "retry": retry | ({"next_at": next_at} if next_at else {})}


@dataclass
class FakeMesh:
    """Holds records, newest first, and notes the calls that change something.

    Attributes:
        is_earlier: whether it knows the filters of its first version only, and no groups.
    """

    tasks: list[dict[str, Any]] = field(default_factory=list)
    refusals: dict[str, tuple[str, str]] = field(default_factory=dict)
    replayed: list[tuple[str, Any]] = field(default_factory=list)
    canceled: list[str] = field(default_factory=list)
    resumed: list[tuple[str, Any]] = field(default_factory=list)
    page: int = 2
    is_earlier: bool = False

    def __call__(
        self, _client: MeshClient, method: str, path: str, body: bytes, _headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        status, content = self.answer(method, urlsplit(path), json.loads(body or b"null"))
        return status, b"" if status == 204 else json.dumps(content).encode()

    def answer(self, method: str, url: Any, body: Any) -> Answer:
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if url.path == "/api/v1/operations/failures":
            return (404, {"message": "Not Found"}) if self.is_earlier else self._groups(query)
        place = url.path.removeprefix("/api/v1/mesh").strip("/").split("/")
        name = unquote(place[0])
        if method == "POST" and place[1] == "resume":
            return self._resume(name, body)
        if method == "POST":
            if name in self.refusals and not body.get("failed_only"):
                code, message = self.refusals[name]
                return 409, {"error": {"code": code, "message": message}}
            self.replayed.append((name, body))
            return 201, {"id": f"{name}-again", "replay_of": name, "source": "s3://b/k"}
        if method == "DELETE":
            self.canceled.append(name)
            return 204, None
        if name:
            found = next((task for task in self.tasks if task["id"] == name), None)
            return (200, found) if found else (404, None)
        return self._list(query)

    def _resume(self, name: str, body: Any) -> Answer:
        if name in self.refusals:
            code, message = self.refusals[name]
            fields = [{"name": "approved", "message": message}]
            return (422 if code == "invalid_input" else 409), {
                "error": {"code": code, "message": message, "fields": fields}
            }
        self.resumed.append((name, body))
        task = next(task for task in self.tasks if task["id"] == name)
        task["status"] = "running"
        return 202, {"id": name, "status": "running"}

    def _list(self, query: dict[str, str]) -> Answer:
        known = {name: text for name, text in query.items() if name == "status" or not self.is_earlier}
        listed, following = self._page(known | {"cursor": query.get("cursor", "0")})
        return 200, {"items": listed} | following

    def _groups(self, query: dict[str, str]) -> Answer:
        status = "running" if query.get("retrying") == "true" else "failed"
        listed, following = self._page({"cursor": "0"} | query | {"status": status})
        views = [msgspec.convert(task, TaskView) for task in listed]
        groups = merged(group_of(view, view.retry.error if view.retry is not None else None) for view in views)
        return 200, {"items": msgspec.to_builtins(groups)} | following

    def _page(self, query: dict[str, str]) -> tuple[list[dict[str, Any]], dict[str, str]]:
        wanted = read_filter(query)
        listed = [task for task in self.tasks if wanted.matches(msgspec.convert(task, TaskView))]
        start = int(query["cursor"])
        end = start + self.page
        return listed[start:end], {"next_cursor": str(end)} if end < len(listed) else {}


@pytest.fixture
def fake_mesh(monkeypatch: pytest.MonkeyPatch) -> FakeMesh:
    """A mesh behind the commands."""
    fake = FakeMesh()
    monkeypatch.setattr(MeshClient, "exchange", lambda *args: fake(*args))  # noqa: PLW0108 - bound like a method
    monkeypatch.setattr("asya_cli.aws_errors.check_actor", lambda *_: None)
    monkeypatch.setattr(MeshOptions, "client", lambda _: MeshClient(connection=None))  # type: ignore[arg-type]
    return fake
