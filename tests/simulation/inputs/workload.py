"""Random input of a mesh: tasks through the gateway, raw and invalid messages, cancellations and redrives."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from hashlib import sha256
from random import Random
from typing import Any

from asya.capabilities.legacy.envelopes import read_envelope
from asya.protocol import names
from asya.protocol.codec import ParseError
from asya.protocol.envelope import NULL, Envelope, Route
from asya.protocol.headers import GENERATION, KEY
from asya.protocol.task_key import SECRET_BYTES, sealed
from asya.protocol.times import format_time
from asya.tasks.view import TIMEOUT_ERROR
from asya.testing.services.functions import ACCOUNT
from asya.testing.services.gateway import URL, event
from asya.testing.services.roles import role_id
from tests.simulation.cloud import Cloud
from tests.simulation.deploys.deployment import ADDED
from tests.simulation.inputs.features import Features
from tests.simulation.inputs.redriving import redrive_all
from tests.simulation.pauses.callers import Caller
from tests.simulation.small_messages import MESSAGE_LIMIT

# The operator that sends raw messages and reads tasks.
OPERATOR = f"arn:aws:iam::{ACCOUNT}:user/operator"
PRODUCER = f"{role_id(names.GATEWAY_API)}:session"
"""A function of the mesh that starts tasks along any route, as the mesh file says; `test_strangers` has the senders outside."""
START_ATTEMPTS = 200
# Further starts of a schedule with the feature `keys`.
KEYED_STARTS = 3
# Callers with one key call together every so many seconds, and for so large a share of their calls.
TOGETHER = 20.0
TOGETHER_SHARE = 0.9
PADDING = 12_000
MAX_REDRIVES = 20


@dataclass
class Workload:
    """The callers and the operator of a mesh.

    Attributes:
        features: the features of the schedule.
        producer: the sender of raw messages.
        started: ids of the tasks whose start the gateway confirmed.
        by_key: idempotency key → the id of its task.
        progress: the last status rank and percentage of each task and generation.
    """

    cloud: Cloud
    random: Random
    features: Features = frozenset()
    producer: str = PRODUCER
    started: list[str] = field(default_factory=list)
    by_key: dict[str, str] = field(default_factory=dict)
    progress: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    _numbers: int = 0

    def __post_init__(self) -> None:
        """Create the caller who answers pauses."""
        self.caller = Caller(self.cloud, self.random, lambda method, path, body: self._ask(method, path, body, {}))

    def schedule(self, count: int) -> None:
        """Schedule this number of messages and tasks at random times."""
        is_burst = self.cloud.simulation.faults.profile.name == "poison"
        for _ in range(count):
            delay = self.random.choice((0.0, self.random.uniform(0.0, 3.0), self.random.uniform(0.0, 60.0)))
            send = self.random.choices(
                (self._start_by_gateway, self._send_raw, self._send_wrong, self._send_to_the_end), (6, 7, 2, 1)
            )[0]
            self.cloud.simulation.scheduler.start(send, 0.0 if is_burst else delay)
        for _ in range(KEYED_STARTS if "keys" in self.features else 0):
            self.cloud.simulation.scheduler.start(self._start_by_gateway, self.random.uniform(0.0, 20.0))

    # --- tasks -----------------------------------------------------------------------------------------------------

    def _start_by_gateway(self) -> None:
        """Start a task with an idempotency key, retry until a response arrives, then perhaps follow and cancel it."""
        body: dict[str, Any] = {"payload": self._payload(padded=0.0)}
        if self.random.random() < 0.4:
            body["timeout"] = self.random.choice((3, 10, 60, 4000))
        if self.random.random() < 0.2:
            body["headers"] = {"x-asya-mesh-status": "off", "tenant": "acme"}
        actor = self.random.choice(
            self.cloud.mesh.light_actors[:1] if "deploys" in self.features else self.cloud.mesh.light_actors
        )
        if "overrides" in self.features and self.random.random() < 0.3:
            body["headers"] = body.get("headers", {}) | {"x-asya-route-override": self._overrides()}
        key = f"key-{self._number()}"
        start = partial(self._start, f"/api/v1/mesh?actor={actor}", body, key)
        if "keys" in self.features:
            for _ in range(self.random.choice((1, 2, 3))):
                self.cloud.simulation.scheduler.start(start)
        task_id = start()
        if task_id is not None and "x-asya-mesh-status" not in body.get("headers", {}):
            self._follow(task_id)

    def _start(self, path: str, body: dict[str, Any], key: str) -> str | None:
        """Start a task with a key, and repeat the call until it is answered; all calls with the key start one task."""
        for _ in range(START_ATTEMPTS):
            answer = self._ask("POST", path, body, {"idempotency-key": key}, user=self._user_of(key))
            if answer is not None and answer["statusCode"] == 201:
                task_id: str = json.loads(answer["body"])["id"]
                first = self.by_key.setdefault(key, task_id)
                if first != task_id:
                    self.cloud.ledger.report_violation(f"{key} started {first} and {task_id}")
                if task_id not in self.started:
                    self.started.append(task_id)
                return task_id
            if answer is not None and answer["statusCode"] == 404 and "deploys" in self.features:
                return None  # an override names an actor that the new version does not have
            self.cloud.simulation.scheduler.wait(self._pause())
        self.cloud.ledger.report_violation(f"a task did not start within {START_ATTEMPTS} attempts")
        return None

    @staticmethod
    def _user_of(key: str) -> str:
        """Who starts the task of a key; the users are operators, and tenants of their own."""
        return Random(f"user of {key}").choice(("AIDAOPERATOR", "AIDASECOND"))

    def _pause(self) -> float:
        """Seconds until a call is repeated; with keys, callers often repeat theirs at the same moment."""
        seconds = self.random.uniform(5.0, 40.0)
        if "keys" in self.features and self.random.random() < TOGETHER_SHARE:
            return TOGETHER - self.cloud.simulation.scheduler.seconds % TOGETHER
        return seconds

    def _follow(self, task_id: str) -> None:
        """Perhaps cancel a task, and read it a few times."""
        if self.random.random() < 0.25:
            self.cloud.simulation.scheduler.wait(self.random.uniform(0.0, self._cancel_delay()))
            self._cancel(task_id)
        for _ in range(self.random.choice((0, 3, 6))):
            self.cloud.simulation.scheduler.wait(self.random.uniform(0.05, 3.0))
            self.check_task(task_id)

    def _cancel(self, task_id: str) -> None:
        """Cancel a task by the API, or by the report that it would write."""
        if "cancels" in self.features:
            for _ in range(START_ATTEMPTS):
                answer = self._ask("DELETE", f"/api/v1/mesh/{task_id}", None, {})
                if answer is not None and answer["statusCode"] < 500:
                    self._note_canceled(task_id, answer)
                    return
                self.cloud.simulation.scheduler.wait(self.random.uniform(2.0, 20.0))
            self.cloud.ledger.report_violation(f"{task_id} was not canceled within {START_ATTEMPTS} attempts")
            return
        at = format_time(self.cloud.simulation.scheduler.now)
        body = [{"id": task_id, "status": "canceled", "at": at, "data": {"reason": "Canceled"}}]
        self._request(self.cloud.api.handle, "POST", "/api/v1/mesh/events", body, {})

    def _note_canceled(self, task_id: str, answer: dict[str, Any]) -> None:
        """Note what a cancellation has answered: at rest it must be true, unless an operator has redriven the task."""
        record = self.cloud.ledger.tables["tasks"].get((task_id, "record"))
        if record is None or answer["statusCode"] not in (202, 204):
            return
        status = json.loads(answer["body"])["status"] if answer["statusCode"] == 202 else record["status"]["S"]
        self.cloud.ledger.said[task_id, int(record["generation"]["N"])] = status

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

    def move_dead_letters(self) -> None:
        """Let SQS move all dead letters back to their queues (StartMessageMoveTask)."""
        for name in [name for name, queue in self.cloud.queues.queues.items() if queue.max_receives is None]:
            self.cloud.queues.move_back(name, by="AIDAOPERATOR:session")

    def mend_and_move(self) -> None:
        """Mend the handlers that crash their process, then let SQS move the dead letters back."""
        self.cloud.ledger.handlers_are_mended = True
        self.move_dead_letters()

    def check_task(self, task_id: str) -> None:
        """Read a task and check that its status and percentage never decrease."""
        answer = self._ask("GET", f"/api/v1/mesh/{task_id}", None, {})
        if answer is None or answer["statusCode"] != 200:
            return
        task: dict[str, Any] = json.loads(answer["body"])
        rank = {"pending": 0, "running": 1, "paused": 2}.get(task["status"], 3)
        generation = task.get("generation", 0)
        before = self.progress.get((task_id, generation), (0, 0))
        if rank == 1 and before[0] == 2 and self.cloud.ledger.pauses.accepted[task_id]:
            before = (1, before[1])  # an answer resumed it
        # An overdue task reads as failed before its record says so, and may still end otherwise.
        if not task.get("error", {}).get("message", "").startswith(TIMEOUT_ERROR.message):
            if (rank, task["progress_percent"]) < before and (rank < before[0] or task["progress_percent"] < before[1]):
                self.cloud.ledger.report_violation(f"{task_id} went back from rank and percentage {before} to {task}")
            self.progress[task_id, generation] = (rank, task["progress_percent"])

    def _ask(
        self, method: str, path: str, body: Any, headers: dict[str, str], *, user: str = "AIDAOPERATOR"
    ) -> dict[str, Any] | None:
        return self._request(self.cloud.api.handle, method, path, body, headers, user=user)

    def _request(
        self,
        handle: Callable[[dict[str, Any]], dict[str, Any] | None],
        method: str,
        path: str,
        body: Any,
        headers: Any,
        *,
        user: str = "AIDAOPERATOR",
    ) -> dict[str, Any] | None:
        text = b"" if body is None else json.dumps(body).encode()
        return handle(event(method, URL + path, text, headers, user_arn=OPERATOR, user_id=user))

    # --- raw messages ----------------------------------------------------------------------------------------------

    def _send_raw(self) -> None:
        """Send a raw envelope with random fields."""
        random, names = self.random, self.cloud.mesh.routable_actors
        if "deploys" in self.features:
            names = (*names, ADDED)
        route = random.choices(names, k=random.randint(1, 4))
        envelope: dict[str, Any] = {
            "id": f"raw-{self._number()}",
            "route": {"prev": [], "curr": route[0], "next": route[1:]},
            "headers": {"tenant": "acme", "count": 7},
            "payload": self._payload(),
        }
        queue = route[0] if route[0] != ADDED else names[0]
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
                queue = random.choice(self.cloud.mesh.light_actors)
            case "unknown":
                envelope["route"]["next"] = [*route[1:], "nowhere"]
            case "heavy headers" if "pauses" not in self.features:  # too large for the message that ends a pause
                envelope["headers"] |= {f"h{number}": "x" * 900 for number in range(7)}
        if "overrides" in self.features and random.random() < 0.4:
            envelope["headers"]["x-asya-route-override"] = self._overrides("nowhere", "x-sink", 7)
            queue = self._overridden(envelope, queue)
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
            "id": self._new_or_used_id(),
            "route": {"prev": ["elsewhere"], "curr": "", "next": []},
            "payload": self._payload(),
        }
        # x-sink does not report a cancellation, because the gateway has made it.
        is_used = envelope["id"] in self.cloud.ledger.accepted
        phase = self.random.choice(
            (None, "succeeded", "failed") if is_used else (None, "succeeded", "failed", "canceled")
        )
        if phase is not None:
            error = {"type": "ValueError", "message": "of the sender"} if phase == "failed" else None
            reason = {"succeeded": "Completed", "failed": "RuntimeError", "canceled": "Canceled"}[phase]
            envelope["status"] = self._status("elsewhere") | {"phase": phase, "reason": reason, "error": error}
        self._send(self.random.choice(("x-sink", "x-sink", "x-sump")), envelope)

    def _new_or_used_id(self) -> str:
        """A new id, or with reruns perhaps one of an envelope that the mesh has seen.

        Nobody who may send to x-sink is kept from ending a task beyond its pause, so ids that may pause stay unused.
        """
        reuses = "reruns" in self.features and "pauses" not in self.features
        used = [
            envelope_id
            for envelope_id, messages in self.cloud.ledger.accepted.items()
            if reuses and not messages[0][0].is_stealth
        ]
        return self.random.choice(used) if used and self.random.random() < 0.4 else f"end-{self._number()}"

    def _send(self, actor: str, envelope: dict[str, Any]) -> None:
        text = json.dumps(envelope)
        if len(text) > MESSAGE_LIMIT - 1024:
            text = json.dumps(self._offloaded(actor, envelope))
        self._send_text(actor, text)

    def _offloaded(self, actor: str, envelope: dict[str, Any]) -> dict[str, Any]:
        """Replace the payload by a claim check, as `asya send` does; some claim checks have no object."""
        payload = json.dumps(envelope["payload"]).encode()
        digest = sha256(payload).hexdigest()
        key = f"inbox/{actor}/{digest[:2]}/{digest}.json"
        if self.random.random() < 0.8:
            self.cloud.bucket.objects[key] = payload
        reference = {"key": key, "size": len(payload), "sha256": digest}
        return envelope | {"payload": None, "headers": envelope.get("headers", {}) | {"x-asya-payload-ref": reference}}

    def _send_text(self, actor: str, text: str) -> None:
        self.cloud.queues.send(self.cloud.queue(actor), _sealed(text), sender=None, by=self.producer)

    # --- parts -----------------------------------------------------------------------------------------------------

    def _payload(self, padded: float = 0.1) -> dict[str, Any]:
        payload: dict[str, Any] = {"trail": [f"root{self._number()}.0"], "value": [1, None, "ü", {"a": 0.5}]}
        if self.random.random() < padded:
            payload["padding"] = "p" * PADDING
        return payload

    def _cancel_delay(self) -> float:
        return self.random.choice((2.0, 60.0)) if "cancels" in self.features else 2.0

    def _overrides(self, *unusable: Any) -> dict[str, Any]:
        """Overrides of actors by others, and perhaps by names that nothing may be sent to."""
        random, names = self.random, self.cloud.mesh.light_actors
        targets: tuple[Any, ...] = (*names, *names, *unusable)
        return {logical: random.choice(targets) for logical in (*names, "logical") if random.random() < 0.4}

    def _overridden(self, envelope: dict[str, Any], queue: str) -> str:
        """The queue for an overridden first actor; a message on the other queue is a route mismatch."""
        target = envelope["headers"]["x-asya-route-override"].get(queue)
        return target if target in self.cloud.mesh.light_actors and self.random.random() < 0.8 else queue

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _now(self) -> Any:
        return self.cloud.simulation.scheduler.now


def _sealed(text: str) -> str:
    """Give a message with a state the key of its task, as the functions of the mesh do for which the producers stand.

    A readable message without a status gets its key where it enters. A text that no function of the mesh writes stays as it is.
    """
    try:
        message = json.loads(text)
    except ValueError:
        return text
    if not isinstance(message, dict) or json.dumps(message) != text or not isinstance(message.get("id"), str):
        return text
    given = message.get("headers") or {}
    if not isinstance(given, dict) or _starts_task(text):
        return text
    plain = Envelope(
        id=message["id"], parent_id=message.get("parent_id") or None, route=Route((), "", ()), payload=NULL
    )
    with_generation = plain.with_headers({GENERATION: given.get(GENERATION)})
    key = json.loads(bytes(sealed(with_generation, bytes(SECRET_BYTES)).headers[KEY]))
    return json.dumps({**message, "headers": {**given, KEY: key}})


def _starts_task(text: str) -> bool:
    try:
        return read_envelope(text.encode("utf-8", "surrogatepass")).status is None
    except ParseError:
        return False
