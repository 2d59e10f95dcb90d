"""Builds the API of the gateway from its handlers."""

from collections.abc import Callable
from datetime import datetime

from asya.capabilities.a2a.routes.wiring import build_a2a
from asya.capabilities.cancels.lambdas.wiring import build_task_cancels
from asya.capabilities.dead_letters.aws.replay_sources import ReplaySources
from asya.capabilities.dead_letters.aws.replay_starts import ReplayStarts
from asya.capabilities.fan_in.aws.set_repeats import SetRepeats
from asya.capabilities.fan_in.aws.sets import FanInSets
from asya.capabilities.legacy.gateway_calls import LegacyReadRoutes
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
from asya.gateway.callbacks.routes import CallbackRoutes
from asya.gateway.http.binding import routes_of
from asya.gateway.http.entry_point import new_task_id
from asya.gateway.http.origin import Origins
from asya.gateway.http.router import HttpRoute
from asya.gateway.lambdas.api import Api
from asya.gateway.routes.cancel import CancelRoutes
from asya.gateway.routes.dismissals import DismissalRoutes
from asya.gateway.routes.failures import FailureRoutes
from asya.gateway.routes.lists import ListRoutes
from asya.gateway.routes.payloads import PayloadRoutes
from asya.gateway.routes.redrives import RedriveRoutes
from asya.gateway.routes.replays import ReplayRoutes
from asya.gateway.routes.resume import ResumeRoutes
from asya.gateway.routes.set_replays import SetReplays
from asya.gateway.routes.task_sets import TaskSetRoutes
from asya.gateway.routes.tasks import TaskRoutes
from asya.gateway.routes.tool_calls import ToolCalls
from asya.gateway.routes.tools import ToolRoutes
from asya.gateway.triggers.wiring import build_backfill_calls, build_slot_calls, build_trigger_calls
from asya.protocol import names
from asya.protocol.keys import INBOX_PREFIX
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
    mesh, warn = settings.table, telemetry.log.warning
    client, table = clients.dynamodb(), settings.table_name("tasks")
    store = build_store(settings, environment)
    tasks = Tasks(store, warn, threaded=environment.is_threaded, on_ends=build_end_notices(settings, warn))
    index = TaskIndex(client, table, threaded=environment.is_threaded)
    scan = ListScan(index, OverdueTasks(index, store, SweepMarks(client, table)))
    lists = TaskLists(scan, store, tasks)
    access = AccessRules(mesh, settings.account, settings.region)
    origins = Origins(settings.gateway_url, environment.new_span)
    # Senders may write large payloads only under `inbox/` (`protocol §4`).
    claim_check = ClaimCheck(clients.s3(), settings.bucket, prefix=INBOX_PREFIX)
    sender = SubmissionSender(clients.sqs(), settings.queue_url, claim_check.offload)
    starter = TaskStarter(
        tasks=tasks,
        keys=IdempotencyKeys(client, table, mesh.retention.tasks, names.GATEWAY_API),
        sender=sender,
        warn=warn,
        trace=_trace(settings, telemetry, environment),
    )
    releases = build_releases(settings, tasks, warn)
    cancels = CancelRoutes(build_task_cancels(settings, tasks, store, environment, warn), access)
    resumes = ResumeRoutes(mesh, tasks, access, releases)
    slots = WaitSlots(Table(client, table), mesh.gateway, environment, warn)
    tool_calls = ToolCalls(mesh, tasks, starter, slots, environment, new_id)
    sources = ReplaySources(clients.s3(), settings.bucket, settings.results_uri, mesh.sink)
    replay_starts = ReplayStarts(tasks, starter)
    replays = ReplayRoutes(
        mesh=mesh,
        tasks=tasks,
        starts=replay_starts,
        access=access,
        sources=sources,
        claim_check=claim_check,
        set_replays=_set_replays(settings, tasks, replay_starts, sources),
        gateway_url=settings.gateway_url,
        new_id=new_id,
        new_span=environment.new_span,
    )
    redrives = RedriveRoutes(
        mesh=mesh,
        tasks=tasks,
        access=access,
        sender=SubmissionSender(clients.sqs(), settings.queue_url, _as_it_is),
        claim_check=claim_check,
        sets=_sets(settings),
        starts=replay_starts,
        admission=build_admission(settings, environment),
    )
    mcp = build_mcp(
        tasks=tasks,
        starter=starter,
        access=access,
        origins=origins,
        tool_calls=tool_calls,
        cancels=cancels,
        resumes=resumes,
        new_id=new_id,
        warn=warn,
        environment=environment,
    )
    agents = build_a2a(
        settings,
        tasks=tasks,
        lists=lists,
        access=access,
        origins=origins,
        tool_calls=tool_calls,
        cancels=cancels,
        resumes=resumes,
        warn=warn,
        environment=environment,
    )
    outages = OutageNotes(client, settings.table_name("sink"))
    handlers = (
        Api(mesh, origins),
        TaskRoutes(mesh, tasks, starter, access, origins, new_id, outages, warn),
        ListRoutes(tasks, lists, access),
        TaskSetRoutes(mesh, tasks, access, _sets(settings)),
        FailureRoutes(Failures(lists), access),
        PayloadRoutes(tasks, access, KeptPayloads(clients.s3(), settings.bucket, settings.results_uri)),
        cancels,
        redrives,
        replays,
        DismissalRoutes(tasks, access, replay_starts),
        resumes,
        ToolRoutes(tool_calls, access, origins),
        build_trigger_calls(settings, access, tasks, lists, new_id),
        build_slot_calls(settings, telemetry, environment),
        build_backfill_calls(settings, access, tasks, cancels, new_id),
        mcp,
        agents,
        LegacyReadRoutes(tasks, access),
        *_callbacks(settings, store, resumes),
    )
    return routes_of(names.GATEWAY_API, settings, handlers)


def _callbacks(settings: Settings, store: TaskStore, resumes: ResumeRoutes) -> tuple[CallbackRoutes, ...]:
    """Build the calls for callbacks; none for a mesh without them."""
    if not settings.table.has_callbacks:
        return ()
    return (CallbackRoutes(settings.namespace, store, resumes, TokenKeys(clients.kms(), settings.token_key or "")),)


def _as_it_is(delivery: Delivery) -> Delivery:
    """Offload nothing."""
    return delivery


def _sets(settings: Settings) -> FanInSets | None:
    """Build the store of sets; None for a mesh without fan-in actors."""
    if not any(actor.kind == "fan_in" for actor in settings.table.actors.values()):
        return None
    return FanInSets(clients.dynamodb(), table=settings.table_name("fan-in"))


def _set_replays(settings: Settings, tasks: Tasks, starts: ReplayStarts, sources: ReplaySources) -> SetReplays | None:
    """Build the replays of failed sets; None for a mesh without fan-in actors."""
    sets = _sets(settings)
    if sets is None:
        return None
    records = SetRepeats(clients.dynamodb(), table=settings.table_name("fan-in"))
    return SetReplays(tasks, starts, sources, sets, records, settings.table.retention.tasks)


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
