"""Random input of a mesh: tasks through the gateway, raw and invalid messages, cancellations and redrives."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from random import Random
from typing import Any

from asya.protocol.times import format_time
from tests.simulation.cloud import Cloud
from tests.simulation.functions import ACCOUNT
from tests.simulation.network import URL, event
from tests.simulation.queues import MESSAGE_LIMIT
from tests.simulation.redriving import redrive_all

# The operator that sends raw messages and reads tasks.
OPERATOR = f"arn:aws:iam::{ACCOUNT}:user/operator"
START_ATTEMPTS = 40
PADDING = 12_000
MAX_REDRIVES = 20


@dataclass
class Workload:
    """The callers and the operator of a mesh.

    Attributes:
        started: ids of the tasks whose start the gateway confirmed.
        progress: the last status rank and percentage of each task and generation.
    """

    cloud: Cloud
    random: Random
    started: list[str] = field(default_factory=list)
    progress: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    _numbers: int = 0

    def schedule(self, count: int) -> None:
        """Schedule this number of messages and tasks at random times."""
        is_burst = self.cloud.simulation.faults.profile.name == "poison"
        for _ in range(count):
            delay = self.random.choice((0.0, self.random.uniform(0.0, 3.0), self.random.uniform(0.0, 60.0)))
            send = self.random.choices(
                (self._start_by_gateway, self._send_raw, self._send_wrong, self._send_to_the_end), (6, 7, 2, 1)
            )[0]
            self.cloud.simulation.scheduler.start(send, 0.0 if is_burst else delay)

    # --- tasks -----------------------------------------------------------------------------------------------------

    def _start_by_gateway(self) -> None:
        """Start a task with an idempotency key, retry until a response arrives, then perhaps follow and cancel it."""
        body: dict[str, Any] = {"payload": self._payload(padded=0.0)}
        if self.random.random() < 0.4:
            body["timeout"] = self.random.choice((3, 10, 60, 4000))
        if self.random.random() < 0.2:
            body["headers"] = {"x-asya-mesh-status": "off", "tenant": "acme"}
        actor = self.random.choice(self.cloud.mesh.light_actors)
        key = f"key-{self._number()}"
        for _ in range(START_ATTEMPTS):
            answer = self._ask("POST", f"/api/v1/mesh?actor={actor}", body, {"idempotency-key": key})
            if answer is not None and answer["statusCode"] == 201:
                task_id = json.loads(answer["body"])["id"]
                self.started.append(task_id)
                if "headers" not in body:
                    self._follow(task_id)
                return
            self.cloud.simulation.scheduler.wait(self.random.uniform(5.0, 40.0))
        self.cloud.ledger.report_violation(f"a task did not start within {START_ATTEMPTS} attempts")

    def _follow(self, task_id: str) -> None:
        """Perhaps cancel a task, and read it a few times."""
        if self.random.random() < 0.25:
            self.cloud.simulation.scheduler.wait(self.random.uniform(0.0, 2.0))
            self._cancel(task_id)
        for _ in range(self.random.choice((0, 3, 6))):
            self.cloud.simulation.scheduler.wait(self.random.uniform(0.05, 3.0))
            self.check_task(task_id)

    def _cancel(self, task_id: str) -> None:
        """Cancel a task by the report that the gateway's DELETE writes."""
        at = format_time(self.cloud.simulation.scheduler.now)
        body = [{"id": task_id, "status": "canceled", "at": at, "data": {"reason": "Canceled"}}]
        self._request(self.cloud.ingest.handle, "POST", "/api/v1/mesh/events", body, {})

    def redrive(self) -> None:
        """Redrive all dead letters, and retry after errors."""
        cloud = self.cloud
        for _ in range(MAX_REDRIVES):
            is_complete = redrive_all(
                cloud.new_process(f"operator/{self._number()}"),
                cloud.queues,
                namespace=cloud.mesh.table.namespace,
                api=cloud.api.handle,
                arn=OPERATOR,
            )
            if is_complete:
                return
            cloud.simulation.scheduler.wait(10.0)

    def check_task(self, task_id: str) -> None:
        """Read a task and check that its status and percentage never decrease."""
        answer = self._ask("GET", f"/api/v1/mesh/{task_id}", None, {})
        if answer is None or answer["statusCode"] != 200:
            return
        task: dict[str, Any] = json.loads(answer["body"])
        rank = {"pending": 0, "running": 1, "paused": 2}.get(task["status"], 3)
        generation = task.get("generation", 0)
        before = self.progress.get((task_id, generation), (0, 0))
        # An overdue task reads as failed before its record says so, and may still end otherwise.
        if task.get("error", {}).get("message") != "task timed out":
            if (rank, task["progress_percent"]) < before and (rank < before[0] or task["progress_percent"] < before[1]):
                self.cloud.ledger.report_violation(f"{task_id} went back from rank and percentage {before} to {task}")
            self.progress[task_id, generation] = (rank, task["progress_percent"])

    def _ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> dict[str, Any] | None:
        return self._request(self.cloud.api.handle, method, path, body, headers)

    def _request(
        self, handle: Callable[[dict[str, Any]], dict[str, Any] | None], method: str, path: str, body: Any, headers: Any
    ) -> dict[str, Any] | None:
        text = b"" if body is None else json.dumps(body).encode()
        return handle(event(method, URL + path, text, headers, OPERATOR, "AIDAOPERATOR"))

    # --- raw messages ----------------------------------------------------------------------------------------------

    def _send_raw(self) -> None:
        """Send a raw envelope with random fields."""
        random, names = self.random, self.cloud.mesh.light_actors
        route = random.choices(names, k=random.randint(1, 4))
        envelope: dict[str, Any] = {
            "id": f"raw-{self._number()}",
            "route": {"prev": [], "curr": route[0], "next": route[1:]},
            "headers": {"tenant": "acme", "count": 7},
            "payload": self._payload(),
        }
        queue = route[0]
        match random.choice(
            ("plain", "plain", "status", "stealth", "later", "child", "misrouted", "unknown", "heavy headers")
        ):
            case "status":
                envelope["status"] = self._status(route[0])
            case "stealth":
                envelope["headers"]["x-asya-mesh-status"] = "off"
            case "later":
                envelope["headers"]["x-asya-not-before"] = format_time(
                    self._now() + timedelta(seconds=random.choice((-5, 20, 2000, 100_000)))
                )
            case "child":
                envelope |= {"parent_id": "somebody", "status": self._status(route[0])}
                envelope["headers"]["x-asya-root"] = "somebody"
            case "misrouted":
                queue = random.choice(names)
            case "unknown":
                envelope["route"]["next"] = [*route[1:], "nowhere"]
            case "heavy headers":
                envelope["headers"] |= {f"h{number}": "x" * 900 for number in range(7)}
        self._send(queue, envelope)

    def _status(self, actor: str) -> dict[str, Any]:
        status: dict[str, Any] = {"phase": "pending", "actor": actor, "created_at": format_time(self._now())}
        if self.random.random() < 0.6:
            seconds = self.random.choice((0.5, 4.0, 30.0, 5000.0))
            status["deadline_at"] = format_time(self._now() + timedelta(seconds=seconds))
        return status

    def _send_wrong(self) -> None:
        """Send an invalid message or a legacy envelope."""
        random, names = self.random, self.cloud.mesh.light_actors
        number, actor = self._number(), random.choice(names)
        route = {"prev": [], "curr": actor, "next": []}
        wrong: tuple[Any, ...] = (
            "not JSON at all",
            "[1, 2]",
            json.dumps({"id": f"wrong-{number}", "payload": 1}),
            json.dumps({"route": route, "payload": 1}),
            json.dumps({"id": "", "route": route, "payload": 1}),
            json.dumps({"id": f"wrong-{number}", "route": {"prev": [], "curr": 3, "next": []}, "payload": 1}),
            json.dumps({"id": f"wrong-{number}", "route": route}),
            json.dumps({"id": f"wrong-{number}", "route": route, "status": {"deadline_at": "soon"}, "payload": 1}),
            json.dumps(
                {
                    "id": f"wrong-{number}",
                    "route": route,
                    "headers": {"x-asya-payload-ref": {"key": "data/secret", "size": 1, "sha256": "0"}},
                    "payload": None,
                }
            ),
            json.dumps({"id": f"old-{number}", "route": {"actors": [actor], "current": 0}, "payload": self._payload()}),
            json.dumps(
                {"job_id": f"old-{number}", "route": {"steps": [actor], "current": 0}, "payload": self._payload()}
            ),
            json.dumps({"id": f"old-{number}", "route": {"actors": [actor], "current": 9}, "payload": self._payload()}),
        )
        self._send_text(self.random.choice((actor, actor, "x-sink", "x-sump")), random.choice(wrong))

    def _send_to_the_end(self) -> None:
        """Send an envelope to an end actor, with or without a status."""
        envelope: dict[str, Any] = {
            "id": f"end-{self._number()}",
            "route": {"prev": ["elsewhere"], "curr": "", "next": []},
            "payload": self._payload(),
        }
        phase = self.random.choice((None, "succeeded", "failed", "canceled"))
        if phase is not None:
            error = {"type": "ValueError", "message": "of the sender"} if phase == "failed" else None
            reason = {"succeeded": "Completed", "failed": "RuntimeError", "canceled": "Canceled"}[phase]
            envelope["status"] = self._status("elsewhere") | {"phase": phase, "reason": reason, "error": error}
        self._send(self.random.choice(("x-sink", "x-sink", "x-sump")), envelope)

    def _send(self, actor: str, envelope: dict[str, Any]) -> None:
        text = json.dumps(envelope)
        if len(text) > MESSAGE_LIMIT - 1024:
            text = json.dumps(self._offloaded(envelope))
        self._send_text(actor, text)

    def _offloaded(self, envelope: dict[str, Any]) -> dict[str, Any]:
        """Replace the payload by a claim check, as `asya send` does; some claim checks have no object."""
        payload = json.dumps(envelope["payload"]).encode()
        digest = sha256(payload).hexdigest()
        key = f"inbox/{digest}.json"
        if self.random.random() < 0.8:
            self.cloud.bucket.objects[key] = payload
        reference = {"key": key, "size": len(payload), "sha256": digest}
        return envelope | {"payload": None, "headers": envelope.get("headers", {}) | {"x-asya-payload-ref": reference}}

    def _send_text(self, actor: str, text: str) -> None:
        self.cloud.queues.send(self.cloud.queue(actor), text, sender=None, by="AIDAOPERATOR")

    # --- parts -----------------------------------------------------------------------------------------------------

    def _payload(self, padded: float = 0.1) -> dict[str, Any]:
        payload: dict[str, Any] = {"trail": [f"root{self._number()}.0"], "value": [1, None, "ü", {"a": 0.5}]}
        if self.random.random() < padded:
            payload["padding"] = "p" * PADDING
        return payload

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _now(self) -> Any:
        return self.cloud.simulation.scheduler.now
