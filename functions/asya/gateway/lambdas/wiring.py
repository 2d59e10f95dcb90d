"""The Lambda handlers of the gateway: `api`, `ingest` (reports by HTTP), `report_queues`, and `deadline_sweep`.

The last one sends the slots of triggers, looks at their lanes, and moves backfills on too.
"""

from asya.capabilities.legacy.gateway_calls import LegacyReportRoutes
from asya.capabilities.triggers.aws.queue_senders import build_end_notices
from asya.capabilities.triggers.lambdas.wiring import build_backfill_sweep, build_lane_sweep, build_slot_sweep
from asya.function.aws import clients
from asya.function.lambdas.function import Function
from asya.gateway.aws.ends_queue import EndsQueue
from asya.gateway.aws.refused_reports import RefusedReportStore
from asya.gateway.http.entry_point import HttpEntryPoint, HttpServices, routes_of
from asya.gateway.http.router import HttpRoute
from asya.gateway.lambdas.ingest import Ingest
from asya.gateway.lambdas.report_queues import EndsAges, ReportQueues, Writes
from asya.gateway.lambdas.task_sweeps import DeadlineSweep, LostSweep
from asya.protocol import names
from asya.senders.lambdas.wiring import build_role_list
from asya.sidecar.lambdas.entry_point import queue_entry_point, schedule_entry_point
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.partials import PartialStore
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.aws.sweep_marks import EndsMarks, LostMarks, SweepMarks
from asya.tasks.aws.tasks import ReportWriter, Tasks
from asya.tasks.reporting.aws.foreign_reports import ForeignReports
from asya.tasks.reporting.aws.gateway_client import GatewayClient


def build_ingest(own: Function) -> Ingest:
    """Build the calls for reports."""
    return Ingest(writer=_report_writer(own, StoredTasks(own).tasks))


def build_report_queues(services: Services) -> ReportQueues:
    """Build the consumer of the report queues."""
    settings = services.settings
    tasks = StoredTasks(services, build_end_notices(services)).tasks
    return ReportQueues(
        services,
        Writes(services, _report_writer(services, tasks)),
        ForeignReports(GatewayClient(services.credentials, settings.region)),
        RefusedReportStore(clients.s3(), settings.bucket),
        EndsAges(_ends_marks(services), services.telemetry, services.now),
        build_role_list(services),
    )


def _report_writer(own: Function, tasks: Tasks) -> ReportWriter:
    partials = PartialStore(clients.dynamodb(), own.settings.table_name("tasks"), own.environment.sleep)
    return ReportWriter(tasks=tasks, partials=partials, warn=own.warn)


def build_deadline_sweep(services: Services) -> DeadlineSweep:
    """Build the deadline sweep of the mesh's tasks."""
    stored = StoredTasks(services, build_end_notices(services))
    marks = SweepMarks(clients.dynamodb(), services.settings.table_name("tasks"))
    return DeadlineSweep(services, stored.index, stored.store, stored.tasks, marks, _ends_queue(services))


def build_lost_sweep(services: Services) -> LostSweep:
    """Build the sweep of the mesh's lost tasks."""
    stored = StoredTasks(services)
    marks = LostMarks(clients.dynamodb(), services.settings.table_name("tasks"))
    return LostSweep(services, stored.index, stored.store, stored.tasks, marks, _ends_queue(services))


def _ends_queue(services: Services) -> EndsQueue:
    url = services.settings.queue_url(names.ENDS)
    return EndsQueue(clients.sqs(), url, _ends_marks(services), services.environment)


def _ends_marks(services: Services) -> EndsMarks:
    return EndsMarks(clients.dynamodb(), services.settings.table_name("tasks"))


def report_routes(own: Function) -> tuple[HttpRoute, ...]:
    """Return the routes of reports."""
    calls = build_ingest(own)
    return routes_of(names.GATEWAY_INGEST, own.settings, [calls, LegacyReportRoutes(calls.tasks, calls.accept_one)])


def _build_api(own: HttpServices) -> tuple[HttpRoute, ...]:
    # Only the API imports every group of calls; this keeps the cold starts of the other functions short.
    from asya.gateway.lambdas.api import build_api

    return build_api(own)


ingest = HttpEntryPoint(report_routes)
api = HttpEntryPoint(_build_api)
# Thousands of overdue tasks may take all the time of the function. Readers see them as failed anyway, but slots that wait too
# long are missed. So slots and backfills come first; each is one query.
deadline_sweep = schedule_entry_point(
    build_slot_sweep, build_backfill_sweep, build_deadline_sweep, build_lane_sweep, build_lost_sweep
)
report_queues = queue_entry_point(build_report_queues)
