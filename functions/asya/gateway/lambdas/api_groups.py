"""Builds the API of the gateway from its handlers."""

import pkgutil
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from functools import cached_property

from asya.capabilities.a2a.routes.wiring import build_a2a
from asya.capabilities.cancels.lambdas.wiring import build_task_cancels
from asya.capabilities.dead_letters.aws.replay_sources import ReplaySources
from asya.capabilities.dead_letters.aws.replay_starts import ReplayStarts
from asya.capabilities.fan_in.aws.set_repeats import SetRepeats
from asya.capabilities.fan_in.aws.sets import FanInSets
from asya.capabilities.mcp.wiring import build_mcp
from asya.capabilities.operations.aws.kept_payloads import KeptPayloads
from asya.capabilities.pauses.lambdas.wiring import build_releases
from asya.capabilities.triggers.aws.end_notices import build_end_notices
from asya.function.aws import clients
from asya.function.aws.claim_check import ClaimCheck
from asya.function.aws.outage_notes import OutageNotes
from asya.function.aws.settings import Settings
from asya.function.aws.submission_sender import SubmissionSender
from asya.function.aws.table import Table
from asya.function.aws.telemetry import Telemetry
from asya.function.aws.token_keys import TokenKeys
from asya.function.delivery import Delivery
from asya.function.lambdas.environment import REAL, Environment
from asya.function.spans import submission_span
from asya.gateway.access import AccessRules
from asya.gateway.aws.wait_slots import WaitSlots
from asya.gateway.http.binding import routes_of
from asya.gateway.http.entry_point import new_task_id
from asya.gateway.http.origin import Origins
from asya.gateway.http.router import HttpRoute
from asya.gateway.routes.cancel import CancelRoutes
from asya.gateway.routes.resume import ResumeRoutes
from asya.gateway.routes.set_replays import SetReplays
from asya.gateway.routes.tool_calls import ToolCalls
from asya.gateway.triggers.wiring import build_backfill_calls, build_slot_calls, build_trigger_calls
from asya.protocol import names
from asya.protocol.keys import INBOX_PREFIX
from asya.protocol.mesh_table import MeshTable
from asya.senders.lambdas.wiring import build_admission
from asya.tasks.aws.failure_groups import Failures
from asya.tasks.aws.index import TaskIndex
from asya.tasks.aws.list_scan import ListScan
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.overdue_tasks import OverdueTasks
from asya.tasks.aws.sweep_marks import SweepMarks
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import Tasks
from asya.tasks.aws.wiring import build_store
from asya.tasks.starts.aws.idempotency_keys import IdempotencyKeys
from asya.tasks.starts.aws.task_starter import TaskStarter
from asya.tasks.starts.submission import FirstMessage


class ApiParts:
    """What the handlers of the API are built from. A handler gets the parts that its fields name, so it needs no line here.

    Args:
        settings: the settings of the function.
        telemetry: the log and the metrics of the function.
        environment: clock, randomness and threads.
        new_id: creates the id of a task.
    """

    def __init__(
        self, settings: Settings, telemetry: Telemetry, environment: Environment, new_id: Callable[[], str]
    ) -> None:
        self._settings = settings
        self._telemetry = telemetry
        self._environment = environment
        self._client, self._table = clients.dynamodb(), settings.table_name("tasks")
        self.namespace: str = settings.namespace
        self.mesh: MeshTable = settings.table
        self.gateway_url: str | None = settings.gateway_url
        self.new_id: Callable[[], str] = new_id
        self.new_span: Callable[[], str] = environment.new_span
        self.warn: Callable[..., None] = telemetry.log.warning
        self.access = AccessRules(settings.table, settings.account, settings.region)
        self.origins = Origins(settings.gateway_url, environment.new_span)
        self.store: TaskStore = build_store(settings, environment)
        self.tasks = Tasks(
            self.store, self.warn, threaded=environment.is_threaded, on_ends=build_end_notices(settings, self.warn)
        )
        self.lists = self._lists()
        self.failures = Failures(self.lists)
        # Senders may write large payloads only under `inbox/` (`protocol §4`).
        self.claim_check = ClaimCheck(clients.s3(), settings.bucket, prefix=INBOX_PREFIX)
        self.sender = SubmissionSender(clients.sqs(), settings.queue_url, _as_it_is)
        self.starter = self._starter()
        self.starts = ReplayStarts(self.tasks, self.starter)
        self.sources = ReplaySources(clients.s3(), settings.bucket, settings.results_uri, settings.table.sink)
        self.sets: FanInSets | None = self._sets()
        self.set_replays: SetReplays | None = self._set_replays()
        self.payloads = KeptPayloads(clients.s3(), settings.bucket, settings.results_uri)
        self.outages = OutageNotes(self._client, settings.table_name("sink"))
        self.admission = build_admission(settings, environment)
        self.cancels = CancelRoutes(
            build_task_cancels(settings, self.tasks, self.store, environment, self.warn), self.access
        )
        self.resumes = ResumeRoutes(self.mesh, self.tasks, self.access, build_releases(settings, self.tasks, self.warn))
        slots = WaitSlots(Table(self._client, self._table), self.mesh.gateway, environment, self.warn)
        self.calls = ToolCalls(self.mesh, self.tasks, self.starter, slots, environment, new_id)

    @cached_property
    def keys(self) -> TokenKeys:
        """The key that signs the tokens of callbacks."""
        return TokenKeys(clients.kms(), self._settings.token_key or "")

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

    def _lists(self) -> TaskLists:
        index = TaskIndex(self._client, self._table, threaded=self._environment.is_threaded)
        overdue = OverdueTasks(index, self.store, SweepMarks(self._client, self._table))
        return TaskLists(ListScan(index, overdue), self.store, self.tasks)

    def _starter(self) -> TaskStarter:
        return TaskStarter(
            tasks=self.tasks,
            keys=IdempotencyKeys(self._client, self._table, self.mesh.retention.tasks, names.GATEWAY_API),
            sender=SubmissionSender(clients.sqs(), self._settings.queue_url, self.claim_check.offload),
            warn=self.warn,
            trace=_trace(self._settings, self._telemetry, self._environment),
        )

    def _sets(self) -> FanInSets | None:
        """Build the store of sets; None for a mesh without fan-in actors."""
        if not any(actor.kind == "fan_in" for actor in self.mesh.actors.values()):
            return None
        return FanInSets(self._client, table=self._settings.table_name("fan-in"))

    def _set_replays(self) -> SetReplays | None:
        """Build the replays of failed sets; None for a mesh without fan-in actors."""
        if self.sets is None:
            return None
        records = SetRepeats(self._client, table=self._settings.table_name("fan-in"))
        return SetReplays(self.tasks, self.starts, self.sources, self.sets, records, self.mesh.retention.tasks)


def build_api(
    settings: Settings, telemetry: Telemetry, environment: Environment = REAL, new_id: Callable[[], str] = new_task_id
) -> tuple[HttpRoute, ...]:
    """Build the calls of the API over the mesh's table and queues.

    Args:
        settings: the settings of the function.
        telemetry: the log and the metrics of the function.
        environment: clock, randomness and threads.
        new_id: creates the id of a task.
    """
    parts = ApiParts(settings, telemetry, environment, new_id)
    handlers = (
        parts.cancels,
        parts.resumes,
        build_trigger_calls(settings, parts.access, parts.tasks, parts.lists, new_id),
        build_slot_calls(settings, telemetry, environment),
        build_backfill_calls(settings, parts.access, parts.tasks, parts.cancels, new_id),
        build_mcp(
            tasks=parts.tasks,
            starter=parts.starter,
            access=parts.access,
            origins=parts.origins,
            tool_calls=parts.calls,
            cancels=parts.cancels,
            resumes=parts.resumes,
            new_id=new_id,
            warn=parts.warn,
            environment=environment,
        ),
        build_a2a(
            settings,
            tasks=parts.tasks,
            lists=parts.lists,
            access=parts.access,
            origins=parts.origins,
            tool_calls=parts.calls,
            cancels=parts.cancels,
            resumes=parts.resumes,
            warn=parts.warn,
            environment=environment,
        ),
    )
    return routes_of(names.GATEWAY_API, settings, handlers, parts.handler)


def _as_it_is(delivery: Delivery) -> Delivery:
    """Offload nothing."""
    return delivery


def _trace(
    settings: Settings, telemetry: Telemetry, environment: Environment
) -> Callable[[FirstMessage, datetime], None]:
    """Return the function that records the span of a submission."""

    def record(first: FirstMessage, started_at: datetime) -> None:
        if telemetry.traces is not None:
            telemetry.traces.add(
                submission_span(first.envelope, first.caller, settings.actor, started_at, environment.now())
            )

    return record
