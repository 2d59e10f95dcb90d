"""Starts the envelopes of a chaos run and answers their pauses; each call is repeated until it is accepted."""

from __future__ import annotations

import heapq
import json
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from asya.client.errors import ConflictError, MeshError
from asya.protocol import names
from asya.tasks.reporting.aws.gateway_client import address_of
from tests.chaos.envelopes import DEADLINE_SECONDS, FIRST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asya.client.mesh_client import MeshClient
    from tests.chaos.envelopes import ChaosEnvelope
    from tests.chaos.event_log import EventLog
    from tests.cloud.callers import ApiCaller

_THREADS = 6
_AGAIN_SECONDS = 3.0
_PAUSE_SECONDS = 5.0
_PAGE = 100


@dataclass
class Workload:
    """The callers of the mesh.

    Attributes:
        mesh: The operator's client; it answers pauses.
        caller: The operator at the gateway; it starts tasks.
        sqs: The operator's client of SQS; its calls go through the fault proxy.
        ids: The id of each started envelope, by name.
        started: When each was accepted, by name.
        answered: The ids of the answered pauses.
    """

    mesh: MeshClient
    caller: ApiCaller
    sqs: Any
    log: EventLog
    ids: dict[str, str] = field(default_factory=dict)
    started: dict[str, float] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def start_all(self, envelopes: Sequence[ChaosEnvelope]) -> None:
        """Start each envelope at its time, and return when all are accepted, or at the end of the run."""
        url = self._queue_url()
        due = [(envelope.start, number) for number, envelope in enumerate(envelopes)]
        heapq.heapify(due)
        open_calls: dict[Future[bool], int] = {}
        with ThreadPoolExecutor(_THREADS) as pool:
            while (due or open_calls) and not self._stopped.is_set():
                while due and due[0][0] <= self.log.now and len(open_calls) < 2 * _THREADS:
                    _, number = heapq.heappop(due)
                    open_calls[pool.submit(self._start, envelopes[number], url)] = number
                for call in [call for call in open_calls if call.done()]:
                    number = open_calls.pop(call)
                    if not call.result():
                        heapq.heappush(due, (self.log.now + _AGAIN_SECONDS, number))
                self._stopped.wait(0.02)

    def answer_pauses(self) -> None:
        """Answer each pause once it is listed, until the run ends."""
        while not self._stopped.wait(_PAUSE_SECONDS):
            try:
                tasks = self.mesh.tasks(status="paused", parent=None, limit=_PAGE)
            except MeshError:
                continue  # the gateway is stopped, or its list fails
            for task in tasks:
                self._answer(task.id)

    def stop(self) -> None:
        """End both loops."""
        self._stopped.set()

    def _answer(self, task_id: str) -> None:
        try:
            self.mesh.resume(task_id, b'{"approved": true}')
        except ConflictError:  # an earlier call was accepted, and its answer lost
            pass
        except MeshError:
            return
        self.answered.add(task_id)

    def _queue_url(self) -> str:
        while True:
            try:
                queue = names.queue_name(self.mesh.connection.namespace, FIRST)
                return str(self.sqs.get_queue_url(QueueName=queue)["QueueUrl"])
            except (ClientError, BotoCoreError):
                self._stopped.wait(1)

    def _start(self, envelope: ChaosEnvelope, url: str) -> bool:
        """Start an envelope; returns whether it was accepted."""
        envelope_id = self._post(envelope) if envelope.by_gateway else self._send(envelope, url)
        if envelope_id is None:
            return False
        self.ids[envelope.name] = envelope_id
        self.started[envelope.name] = self.log.now
        return True

    def _send(self, envelope: ChaosEnvelope, url: str) -> str | None:
        route = {"prev": [], "curr": FIRST, "next": envelope.route}
        body = json.dumps({"id": envelope.name, "route": route, "payload": envelope.payload})
        try:
            self.sqs.send_message(QueueUrl=url, MessageBody=body)
        except (ClientError, BotoCoreError):
            return None
        return envelope.name

    def _post(self, envelope: ChaosEnvelope) -> str | None:
        url = f"{self.caller.url}/api/v1/mesh?actor={FIRST}"
        request: dict[str, Any] = {"payload": {**envelope.payload, "plan": envelope.route}}
        if envelope.deadline:
            request["timeout"] = DEADLINE_SECONDS
        body = json.dumps(request).encode()
        headers = self.caller.signed("POST", url, body) | {"idempotency-key": envelope.name}
        try:
            answer = self.caller.pool.request(
                "POST", address_of(url), body=body, headers=headers, redirect=False, timeout=35.0
            )
        except HTTPError:
            return None
        if answer.status == 201:
            return str(json.loads(answer.data)["id"])
        if answer.status in {409, 429} or answer.status >= 500:
            return None
        raise AssertionError(f"the gateway refuses {envelope.name}: {answer.status} {answer.data[:300]!r}")
