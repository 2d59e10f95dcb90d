"""A gateway in memory for the page: it answers the calls of the console from tasks that a test has made."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from asya.tasks.failures import kind_of
from asya_cli.console.gateway import GatewayAnswer
from asya_cli.console.redrives import RedriveAnswer, RedriveOutcome, RedriveRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

START = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
"""The creation of the first task that a test makes."""
NOW = START + timedelta(hours=1)
"""What the clock of the page shows."""

_TASK = re.compile(r"/api/v1/mesh/([^/]+)(?:/(.+))?")


def at(seconds: float) -> str:
    """A time after the first task."""
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


@dataclass
class StubGateway:
    """The tasks of a mesh, with the calls that the page has made.

    Attributes:
        answers: What a path answers instead, or a path with `?cursor=` for a later page; a path that is missing here and has no
            task is 404.
        events: The text of each task's stream.
        bodies: The texts that the page has sent.
    """

    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    events: dict[str, list[bytes]] = field(default_factory=dict)
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    redrives: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, task_id: str, status: str = "succeeded", **more: Any) -> dict[str, Any]:
        """Make a task, a second younger than the one before."""
        made = at(len(self.tasks))
        percent = 100 if status == "succeeded" else 40
        given = {"id": task_id, "status": status, "progress_percent": percent, "created_at": made, "updated_at": made}
        error = more.get("error")
        group = {"error_group": kind_of(error["message"], error["type"])} if error is not None else {}
        task = {**given, "generation": 0, "actor": "price-orders", "owner": "operator", **group, **more}
        with self._lock:
            self.tasks[task_id] = task
        return task

    def change(self, task_id: str, **more: Any) -> None:
        """Change a task, as a report would."""
        with self._lock:
            self.tasks[task_id] = {**self.tasks[task_id], **more}

    def call(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> GatewayAnswer:
        """Answer a call of the page."""
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        sent = json.loads(body) if body else None
        if method != "GET":
            self.calls.append((method, parts.path, sent))
            self.bodies.append(body)
        with self._lock:
            status, answer = self._answer(method, parts.path, query, sent)
        if isinstance(answer, list):
            return GatewayAnswer(status, {"content-type": "text/event-stream"}, iter(answer))
        if answer is None:  # as of 204, which has no body
            return GatewayAnswer(status, {}, iter(()))
        return GatewayAnswer(status, {"content-type": "application/json"}, iter([msgspec.json.encode(answer)]))

    def redrive(self, request: RedriveRequest) -> RedriveAnswer:
        """Redrive every task but those of an actor without dead letters."""
        self.redrives += [task.id for task in request.tasks]
        return RedriveAnswer(items=list(map(self._redriven, request.tasks)))

    def _redriven(self, task: Any) -> RedriveOutcome:
        if task.actor == "":
            return RedriveOutcome(id=task.id, problem="there is no dead letter of this task")
        return RedriveOutcome(id=task.id, generation=1)

    def _answer(self, method: str, path: str, query: dict[str, str], sent: Any) -> tuple[int, Any]:
        if (method, path) == ("GET", "/api/v1/mesh"):
            return 200, self._page(query)
        page = f"{unquote(path)}?cursor={query['cursor']}" if "cursor" in query else unquote(path)
        if method == "GET" and page in self.answers:
            return 200, self.answers[page]
        match = _TASK.fullmatch(path)
        task_id, what = (unquote(match[1]), match[2] or "") if match else ("", "")
        if task_id not in self.tasks:
            return 404, {"error": {"code": "not_found", "message": f"there is no task {task_id!r}"}}
        return self._of_task(method, task_id, what, query, sent)

    def _of_task(self, method: str, task_id: str, what: str, query: dict[str, str], sent: Any) -> tuple[int, Any]:
        match method, what:
            case "GET", "":
                return 200, self.tasks[task_id]
            case "GET", "children":
                return 200, self._page({**query, "parent": task_id})
            case "GET", "timeline":
                return 200, {"items": []}
            case "GET", "set":
                return 200, {"set": None}
            case "GET", "events":
                return (200, self.events[task_id]) if task_id in self.events else (204, None)
            case "DELETE", "":
                self.tasks[task_id] = {**self.tasks[task_id], "status": "canceled", "reason": "Canceled"}
                return 204, None
            case "POST", "replay":
                new = {**self.tasks[task_id], "id": f"{task_id}-again", "status": "pending"}
                self.tasks[new["id"]] = new
                return 201, {"id": new["id"], "source": "s3://bucket/key"}
            case "POST", "dismiss":
                resolution = {"how": "dismissed", "by": "operator", "at": at(0), "reason": sent.get("reason")}
                self.tasks[task_id].pop("resolution", None)
                self.tasks[task_id] = {
                    **self.tasks[task_id],
                    **({} if sent.get("undo") else {"resolution": resolution}),
                }
                return 200, {"id": task_id}
            case "POST", "resume":
                self.tasks[task_id] = {**self.tasks[task_id], "status": "running"}
                return 202, {"id": task_id}
            case _:
                return 404, {"message": "Not Found"}

    def _page(self, query: dict[str, str]) -> dict[str, Any]:
        """A page of tasks as a gateway without further filters has it."""
        newest = sorted(self.tasks.values(), key=lambda task: (task["created_at"], task["id"]), reverse=True)
        chosen = list(self._chosen(newest, query))
        start = int(query.get("cursor", "0"))
        if start:  # a cursor is a place from the end, so that new tasks shift no page
            start = len(chosen) - start
        end = start + int(query.get("limit", "20"))
        page: dict[str, Any] = {"items": chosen[start:end]}
        if end < len(chosen):
            page["next_cursor"] = str(len(chosen) - end)
        return page

    @staticmethod
    def _chosen(tasks: list[dict[str, Any]], query: dict[str, str]) -> Iterator[dict[str, Any]]:
        for task in tasks:
            if query.get("status", task["status"]) == task["status"] and query.get("parent") in (
                None,
                task.get("parent_id"),
            ):
                yield task
