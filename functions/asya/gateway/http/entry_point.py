"""The entry points of functions that answer calls: what Lambda calls, and what every other mode builds the same function from."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asya.function.aws.settings import load_settings
from asya.function.lambdas.function import Function
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
class HttpServices(Function):
    """What a function that answers calls is built from.

    Attributes:
        new_id: Creates the id of a task.
        lines: The lines of the mesh's functions; None for those in CloudWatch Logs.
        on_lambda: Whether Lambda functions read the queues of the mesh.
        read_secret: Reads the text of a secret; None for the secret stores of AWS.
    """

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
            self._started = self.start(HttpServices(load_settings(os.environ)))
        return self._started(event)
