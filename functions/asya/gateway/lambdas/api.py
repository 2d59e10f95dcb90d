"""Builds the API of the gateway from its handlers, and holds its Lambda handler (`protocol §13`)."""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property, partial

from asya.capabilities.a2a.routes.calls import build_a2a
from asya.capabilities.cancels.lambdas.task_cancels import build_task_cancels
from asya.capabilities.dead_letters.aws.replays import ReplaySources, ReplayStarts
from asya.capabilities.fan_in.aws.sets import FanInSets, SetRepeats
from asya.capabilities.mcp.routes import build_mcp
from asya.capabilities.operations.aws.kept_payloads import KeptPayloads
from asya.capabilities.pauses.lambdas.wiring import build_releases
from asya.capabilities.triggers.aws.queue_senders import build_end_notices
from asya.function.aws import clients
from asya.function.aws.outage_notes import OutageNotes
from asya.function.aws.submission_sender import SubmissionSender
from asya.function.aws.table import Table
from asya.function.spans import submission_span
from asya.gateway.access import AccessRules
from asya.gateway.aws.long_poll_permits import LongPollPermits
from asya.gateway.http.entry_point import HttpEntryPoint, HttpServices, routes_of
from asya.gateway.http.origin import Origins
from asya.gateway.http.router import HttpRoute, Request, Response
from asya.gateway.routes.cancel import CancelRoutes
from asya.gateway.routes.replays import SetReplays
from asya.gateway.routes.reports import ReportRoutes
from asya.gateway.routes.resume import ResumeRoutes
from asya.gateway.routes.tool_tasks import ToolTasks
from asya.gateway.routes.tools import ToolCalls
from asya.gateway.triggers.wiring import build_backfill_calls, build_slot_calls, build_trigger_calls
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.senders.aws.token_keys import TokenKeys, build_token_keys
from asya.senders.lambdas.wiring import build_admission
from asya.tasks.aws.lists import build_lists
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import ReportWriter
from asya.tasks.starts.aws.idempotency_keys import IdempotencyKeys
from asya.tasks.starts.aws.task_starter import TaskStarter
from asya.tasks.starts.submission import FirstMessage


@dataclass(frozen=True, slots=True)
class Api:
    """The OpenAPI document and the health check."""

    mesh: MeshTable
    origins: Origins

    def openapi(self, request: Request, _now: datetime) -> Response:
        """`GET /openapi.json`: the requests and responses of every call."""
        # The document needs many types that other calls do not; the late import keeps cold starts short.
        from asya.gateway.lambdas.openapi import document

        takes_tokens = self.origins.takes_tokens(request)
        return Response(200, document(self.mesh, request.base_url, takes_tokens=takes_tokens))

    def health(self, _request: Request, _now: datetime) -> Response:
        """`GET /health`: the gateway answers."""
        return Response(200, {"status": "ok"})


class ApiParts:
    """What the handlers of the API are built from. A handler gets the parts that its fields name, so it needs no line here.

    Args:
        own: the function.
    """

    def __init__(self, own: HttpServices) -> None:
        self._own = own
        settings, stored = own.settings, StoredTasks(own, build_end_notices(own))
        self._client, self._table = clients.dynamodb(), settings.table_name("tasks")
        self.namespace: str = settings.namespace
        self.mesh: MeshTable = settings.table
        self.gateway_url: str | None = settings.gateway_url
        self.new_id: Callable[[], str] = own.new_id
        self.new_span: Callable[[], str] = own.environment.new_span
        self.warn: Callable[..., None] = own.warn
        self.access = AccessRules(settings.table, settings.account, settings.region)
        self.origins = Origins(settings.gateway_url, own.environment.new_span, self.access)
        self.store: TaskStore = stored.store
        self.tasks = stored.tasks
        self.writer: ReportWriter = stored.writer
        self.accept = ReportRoutes(self.writer).accept_one
        self.lists = build_lists(stored)
        self.claim_check = own.inbox
        self.sender = SubmissionSender(clients.sqs(), settings.queue_url, own.keys.seal)
        self.starter = self._starter()
        self.starts = ReplayStarts(self.tasks, self.starter)
        self.sources = ReplaySources(clients.s3(), settings.bucket, settings.results_uri, settings.table.sink)
        self.sets: FanInSets | None = self._sets()
        self.set_replays: SetReplays | None = self._set_replays()
        self.payloads = KeptPayloads(clients.s3(), settings.bucket, settings.results_uri, own.inbox)
        self.outages = OutageNotes(self._client, settings.table_name("sink"))
        self.admission = build_admission(own, own.keys)
        self.cancels = CancelRoutes(build_task_cancels(own, stored, own.keys.seal), self.access)
        self.resumes = ResumeRoutes(self.mesh, self.tasks, self.access, build_releases(own, self.tasks, own.keys.seal))
        permits = LongPollPermits(Table(self._client, self._table), self.mesh.gateway, own.environment, self.warn)
        self.calls = ToolCalls(self.mesh, self.tasks, self.starter, permits, own.environment, own.new_id)
        self.tools = ToolTasks(self.calls, self.cancels, self.resumes, self.access, self.origins, self.warn)

    @cached_property
    def keys(self) -> TokenKeys:
        """The key that signs the tokens of callbacks."""
        return build_token_keys(self._own.settings)

    def handler(self, name: str) -> object:
        """Build a handler.

        Args:
            name: its class.

        Raises:
            LookupError: a field names no part.
        """
        kind = pkgutil.resolve_name(name)
        missing = [field.name for field in fields(kind) if not hasattr(self, field.name)]
        if missing:
            raise LookupError(f"{name}.{missing[0]}: the API has no such part; add it to ApiParts")
        return kind(**{field.name: getattr(self, field.name) for field in fields(kind)})

    def _starter(self) -> TaskStarter:
        return TaskStarter(
            tasks=self.tasks,
            keys=IdempotencyKeys(self._client, self._table, self.mesh.retention.tasks, names.GATEWAY_API),
            sender=self._own.submissions(self._own.keys.seal),
            warn=self.warn,
            trace=partial(_trace, self._own),
        )

    def _sets(self) -> FanInSets | None:
        """Build the store of sets; None for a mesh without fan-in actors."""
        if not any(actor.kind == "fan_in" for actor in self.mesh.actors.values()):
            return None
        return FanInSets(self._client, table=self._own.settings.table_name("fan-in"))

    def _set_replays(self) -> SetReplays | None:
        """Build the replays of failed sets; None for a mesh without fan-in actors."""
        if self.sets is None:
            return None
        records = SetRepeats(self._client, table=self._own.settings.table_name("fan-in"))
        return SetReplays(self.tasks, self.starts, self.sources, self.sets, records, self.mesh.retention.tasks)


def build_api(own: HttpServices) -> tuple[HttpRoute, ...]:
    """Build the calls of the API over the mesh's table and queues."""
    parts = ApiParts(own)
    handlers = (
        parts.cancels,
        parts.resumes,
        build_trigger_calls(own, parts.access, parts.tasks, parts.lists),
        build_slot_calls(own),
        build_backfill_calls(own, parts.access, parts.tasks, parts.cancels),
        build_mcp(parts.tools),
        build_a2a(own, parts.tools, parts.lists),
    )
    return routes_of(names.GATEWAY_API, own.settings, handlers, parts.handler)


def _trace(own: HttpServices, first: FirstMessage, started_at: datetime) -> None:
    """Record the span of a submission."""
    traces = own.telemetry.traces
    if traces is not None:
        traces.add(submission_span(first.envelope, first.caller, own.settings.actor, started_at, own.now()))


api = HttpEntryPoint(build_api)
"""The Lambda handler of the API."""
