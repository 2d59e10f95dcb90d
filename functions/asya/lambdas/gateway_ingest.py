"""The gateway's entrance for the mesh itself: reports of events, and states for pre-flight (`protocol §13`).

`POST /api/v1/mesh/events` is for the mesh's functions and operators, `POST /api/v1/mesh/states` for the functions only.
Which of its events were taken is told one by one; the request as a whole is answered 200 if it is a batch at all.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from asya.aws import clients
from asya.aws.dynamo_tasks import DynamoTaskStore
from asya.aws.settings import Settings, load_settings
from asya.aws.tasks import Tasks
from asya.aws.telemetry import Telemetry
from asya.lambdas.gateway_http import Request, Response, Route, answer, required_identity
from asya.lambdas.surroundings import REAL, Surroundings
from asya.protocol.event_batch import BatchError, read_events, read_queries
from asya.protocol.events import EventResult, EventResults, TaskEvent, TaskStates
from asya.routing.access import AccessRules, Caller
from asya.routing.refusal import RefusedError

# Lambda takes 6 MB in one event; a body may come in base64.
BODY_LIMIT = 4 * 1024 * 1024

Item = TypeVar("Item")


@dataclass(frozen=True)
class Ingest:
    """What the calls need, and the calls."""

    tasks: Tasks
    access: AccessRules

    def routes(self, now: datetime) -> tuple[Route, ...]:
        """The calls as of one moment."""
        return (
            Route("POST", "/api/v1/mesh/events", lambda request: self.events(request, now)),
            Route("POST", "/api/v1/mesh/states", lambda request: self.states(request, now)),
        )

    def events(self, request: Request, now: datetime) -> Response:
        """Take a batch of reports; the mesh's own functions may report on tasks nobody has heard of yet."""
        caller = self._caller(request)
        if not (caller.is_mesh_function or caller.is_operator):
            raise RefusedError(403, "forbidden", "only the mesh's own functions and its operators report events")
        read = _batch(read_events, request)
        events = [item for item in read if isinstance(item, TaskEvent)]
        results = iter(self.tasks.report(events, now, may_create=caller.is_mesh_function))
        return Response(
            200, EventResults(items=tuple(item if isinstance(item, EventResult) else next(results) for item in read))
        )

    def states(self, request: Request, now: datetime) -> Response:
        """Tell a sidecar how tasks and their roots stand."""
        if not self._caller(request).is_mesh_function:
            raise RefusedError(403, "forbidden", "only the mesh's own functions ask for states")
        return Response(200, TaskStates(items=self.tasks.states(_batch(read_queries, request), now)))

    def _caller(self, request: Request) -> Caller:
        return self.access.caller(required_identity(request))


def _batch(read: Callable[[bytes], list[Item]], request: Request) -> list[Item]:
    if len(request.body) > BODY_LIMIT:
        raise RefusedError(413, "too_large", f"the body has {len(request.body)} bytes; {BODY_LIMIT} at most")
    try:
        return read(request.body)
    except BatchError as error:
        raise RefusedError(400, "invalid_batch", str(error), error.field) from None


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Lambda's entry point."""
    ingest, telemetry = _built()
    return answer(event, ingest.routes(REAL.now()), telemetry.log)


def build(settings: Settings, telemetry: Telemetry, surroundings: Surroundings = REAL) -> Ingest:
    """The calls over the mesh's table."""
    retention = settings.table.retention.tasks
    store = DynamoTaskStore(clients.dynamodb(), settings.table_name("tasks"), retention, surroundings.pause)
    return Ingest(
        tasks=Tasks(store, telemetry.log.warning, threaded=surroundings.is_threaded),
        access=AccessRules(settings.table, settings.account, settings.region),
    )


@cache
def _built() -> tuple[Ingest, Telemetry]:
    settings = load_settings(os.environ)
    telemetry = Telemetry(settings.namespace, settings.actor)
    return build(settings, telemetry), telemetry
