"""Turns a group of calls into the handler that Lambda calls."""

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from asya.gateway.http.router import RouteGroup, answer
from asya.messaging.aws.settings import Settings, load_settings
from asya.messaging.aws.telemetry import Telemetry
from asya.messaging.lambdas.environment import REAL


class HttpFunction:
    """A Lambda handler for events of an HTTP API; builds its calls at the first event and reuses them.

    Args:
        build: builds the calls from the settings and the telemetry of the function.
    """

    def __init__(self, build: Callable[[Settings, Telemetry], RouteGroup]) -> None:
        self._build = build
        self.built = cache(self._first)

    def _first(self) -> tuple[RouteGroup, Telemetry]:
        settings = load_settings(os.environ)
        telemetry = Telemetry(settings.namespace, settings.actor)
        return self._build(settings, telemetry), telemetry

    def __call__(self, event: dict[str, Any], _context: object) -> dict[str, Any]:
        """Handle one request."""
        calls, telemetry = self.built()
        return answer(event, calls.routes(REAL.now()), telemetry.log)
