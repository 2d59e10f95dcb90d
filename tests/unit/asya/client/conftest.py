"""A double of a mesh for its client: a gateway with answers that a test gives, and a clock that does not wait."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from asya.client import watch
from asya.client.mesh_client import MeshClient
from asya.protocol.codec import decode
from asya.protocol.keys import S3Prefix

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya.protocol.envelope import Envelope

MOMENT = "2026-11-20T09:00:00.000000Z"


def task(status: str, task_id: str = "t1", **more: object) -> dict[str, Any]:
    """A task as the gateway answers it."""
    return {
        "id": task_id, "status": status, "progress_percent": 33, "generation": 0,
        "created_at": MOMENT, "updated_at": MOMENT, **more,
    }  # fmt: skip


def stream(*events: tuple[str, str, object]) -> bytes:
    """The text of events: name, cursor and data."""
    texts = [f"event: {name}\nid: {cursor}\ndata: {json.dumps(data)}\n\n" for name, cursor, data in events]
    return "".join(["retry: 300\n\n", *texts]).encode()


@dataclass(frozen=True)
class Call:
    """What the gateway was asked."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass
class FakeGateway:
    """Gives the answers of a test in their order, the last one again and again, and notes the calls.

    An answer is a status with content, or an error of the connection.
    """

    answers: list[tuple[int, Any] | Exception] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    sent: list[Envelope] = field(default_factory=list)
    objects: dict[str, bytes] = field(default_factory=dict)

    def answer(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        url = urlsplit(path)
        self.calls.append(
            Call(method, unquote(url.path), dict(parse_qsl(url.query)), json.loads(body or b"null"), dict(headers))
        )
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, content = answer
        return status, content if isinstance(content, bytes) else json.dumps(content).encode()

    # --- of SQS

    def get_queue_url(self, QueueName: str) -> dict[str, str]:  # noqa: N803
        return {"QueueUrl": f"https://sqs.example/123456789012/{QueueName}"}

    def send_message(self, QueueUrl: str, MessageBody: str) -> dict[str, str]:  # noqa: N803
        self.sent.append(decode(MessageBody.encode()))
        assert QueueUrl.endswith(f"/asya-shop-{self.sent[-1].route.curr}")
        return {"MessageId": "m-1"}


class FakeMeshClient(MeshClient):
    """The client of a mesh whose gateway is a double."""

    def exchange(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        gateway: FakeGateway = self.connection.sqs()  # type: ignore[assignment]
        return gateway.answer(method, path, body, headers)

    def fetch(self, uri: str) -> bytes | None:
        gateway: FakeGateway = self.connection.sqs()  # type: ignore[assignment]
        return gateway.objects.get(uri)


@pytest.fixture
def gateway() -> FakeGateway:
    """The gateway of the mesh."""
    return FakeGateway()


@pytest.fixture
def client(gateway: FakeGateway) -> MeshClient:
    """The client of the mesh."""
    prefix = S3Prefix("bucket", "")
    connection: Any = SimpleNamespace(
        namespace="shop", region="us-east-1", data=prefix, results=prefix, sqs=lambda: gateway, s3=lambda: None
    )
    return FakeMeshClient(connection)


@dataclass
class Clock:
    """A clock that each sleep moves on; it notes the pauses."""

    seconds: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.pauses.append(seconds)
        self.seconds += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of waits, with and without an event loop."""
    clock = Clock()
    switch = asyncio.sleep

    async def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        await switch(0)

    monkeypatch.setattr(watch, "time", clock)
    monkeypatch.setattr("asya.client.async_mesh.asyncio.sleep", sleep)
    return clock
