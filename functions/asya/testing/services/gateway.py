"""The gateway: its functions, in processes that stay warm until they crash."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from asya import registry
from asya.function.aws.settings import Settings
from asya.gateway.call_table import calls_of
from asya.gateway.doors import Door, choose, doors_of, passed_path
from asya.gateway.http.entry_point import HttpEntryPoint, HttpServices, Invocation
from asya.protocol import ids
from asya.protocol.mesh_table import MeshTable
from asya.testing.services.clients import SimulatedLines
from asya.testing.services.functions import QuietTelemetry
from asya.testing.services.process import Process, ProcessCrashed, running
from asya.testing.webhooks import kit_secret

HOST = "gateway.simulated"
URL = f"https://{HOST}"
# Seconds that API Gateway waits for a function.
REQUEST_TIMEOUT = 30.0


def _new_id(process: Process) -> str:
    return ids.mesh_id(2 * process.simulation.random.getrandbits(64).to_bytes(8))


@dataclass
class GatewayFunction:
    """One function of the gateway and its warm processes.

    Attributes:
        start: starts the function in a new process.
    """

    name: str
    new_process: Callable[[str], Process]
    start: Callable[[Process], Invocation]
    process_count: int = 0
    _warm: list[tuple[Process, Invocation]] = field(default_factory=list)

    def replace(self, start: Callable[[Process], Invocation]) -> None:
        """Deploy the function again; requests that are at work end in their processes."""
        self.start = start
        self._warm = []

    def handle(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Answer a request; None if the process crashed."""
        process, invoke = self._acquire()
        process.ends_at = process.simulation.scheduler.seconds + REQUEST_TIMEOUT
        with running(process):
            try:
                response = invoke(event)
            except ProcessCrashed:
                return None
        if not process.is_alive:
            return None
        process.ends_at = float("inf")
        self._warm.append((process, invoke))
        return response

    def _acquire(self) -> tuple[Process, Invocation]:
        if self._warm:
            return self._warm.pop()
        self.process_count += 1
        process = self.new_process(f"{self.name}/{self.process_count}")
        with running(process):
            return process, self.start(process)


def started(settings: Settings) -> Callable[[Process], Invocation]:
    """Return what starts the function of the gateway with these settings in a process, as Lambda does."""
    declared = registry.of(settings.table).functions[settings.actor]

    def start(process: Process) -> Invocation:
        telemetry: Any = QuietTelemetry(process, settings.table)
        own = HttpServices(
            settings=settings,
            given_telemetry=telemetry,
            environment=process,
            new_id=lambda: _new_id(process),
            lines=SimulatedLines(process.simulation),
            on_lambda=False,
            read_secret=kit_secret,
        )
        entry_point: HttpEntryPoint = process.entry_point(declared.entry_point)
        return entry_point.start(own)

    return start


@dataclass(frozen=True)
class Gateway:
    """API Gateway: passes each call to its function.

    Attributes:
        mesh: the mesh, whose calls the API has.
        functions: the functions by name.
    """

    mesh: MeshTable
    functions: Mapping[str, GatewayFunction]

    @cached_property
    def _doors(self) -> tuple[Door, ...]:
        return doors_of(calls_of(self.mesh))

    def handle(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Answer a request; None if the process of its function crashed."""
        http = event["requestContext"]["http"]
        door = choose(self._doors, http["method"], http["path"])
        if door is None:
            return _refusal(404, "Not Found")
        if not door.is_open and event["requestContext"]["authorizer"] is None:
            return _refusal(403, "Forbidden")
        entered = {"routeKey": door.key, "pathParameters": door.parameters(http["path"]) or None}
        return self.functions[door.function].handle(event | entered)


def _refusal(status: int, message: str) -> dict[str, Any]:
    headers = {"content-type": "application/json"}
    return {"statusCode": status, "headers": headers, "body": json.dumps({"message": message}, separators=(",", ":"))}


def event(
    method: str, url: str, body: bytes, headers: Mapping[str, str], *, user_arn: str, user_id: str
) -> dict[str, Any]:
    """Build the event of API Gateway, payload format 2.0; a caller without an ARN has signed nothing."""
    parts = urlsplit(url)
    path = passed_path(parts.path)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return {
        "version": "2.0",
        "rawPath": path,
        "headers": {name.lower(): value for name, value in headers.items()},
        "queryStringParameters": query or None,
        "requestContext": {
            "http": {"method": method, "path": path},
            "domainName": HOST,
            "stage": "$default",
            "requestId": "simulated",
            "authorizer": {"iam": {"userArn": user_arn, "userId": user_id}} if user_arn else None,
        },
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }
