"""The entry points of functions that answer calls: what Lambda calls, and what every other mode builds the same function from."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asya.function.aws.settings import Settings, load_settings
from asya.function.aws.telemetry import Telemetry
from asya.function.aws.traces import build_traces
from asya.function.lambdas.environment import REAL, Environment
from asya.gateway.http.router import HttpRoute, answer
from asya.protocol import ids

if TYPE_CHECKING:
    from asya.capabilities.operations.aws.function_logs import LoggedLines

Invocation = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Answers an event of an HTTP API."""


def new_task_id() -> str:
    """Return the id of a new task."""
    return ids.mesh_id(uuid.uuid4().bytes)


@dataclass(frozen=True, kw_only=True)
class HttpServices:
    """What a function that answers calls is built from.

    Attributes:
        settings: Its settings.
        telemetry: Its log, metrics and spans.
        environment: Its clock, randomness and threads.
        new_id: Creates the id of a task.
        lines: The lines of the mesh's functions; None for those in CloudWatch Logs.
        on_lambda: Whether Lambda functions read the queues of the mesh.
        read_secret: Reads the text of a secret; None for the secret stores of AWS.
    """

    settings: Settings
    telemetry: Telemetry
    environment: Environment = REAL
    new_id: Callable[[], str] = new_task_id
    lines: LoggedLines | None = None
    on_lambda: bool = True
    read_secret: Callable[[str], str] | None = None


class HttpEntryPoint:
    """A function that answers calls. Lambda calls it; it starts at the first event and stays.

    Args:
        build: Builds the calls of the function.
    """

    def __init__(self, build: Callable[[HttpServices], Sequence[HttpRoute]]) -> None:
        self._build = build
        self._started: Invocation | None = None

    def start(self, own: HttpServices) -> Invocation:
        """Build the function of a process, which the result calls for each event."""
        routes = self._build(own)

        def invoke(event: Mapping[str, Any]) -> dict[str, Any]:
            try:
                return answer(event, routes, own.environment.now(), own.telemetry.log)
            finally:
                own.telemetry.flush()

        return invoke

    def __call__(self, event: Mapping[str, Any], _context: object) -> dict[str, Any]:
        """Answer one event."""
        if self._started is None:
            settings = load_settings(os.environ)
            telemetry = Telemetry(settings.namespace, settings.actor, build_traces(settings, REAL.monotonic))
            self._started = self.start(HttpServices(settings=settings, telemetry=telemetry))
        return self._started(event)
