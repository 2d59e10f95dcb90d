"""The Lambda handlers of the gateway: `api`, `ingest` (reports by HTTP), `report_queues`, and `deadline_sweep`.

The last one sends the slots of triggers, looks at their lanes, and moves backfills on too.
"""

from asya.capabilities.legacy.gateway_calls import LegacyReportRoutes
from asya.capabilities.triggers.aws.end_notices import build_end_notices
from asya.capabilities.triggers.lambdas.wiring import build_backfill_sweep, build_lane_sweep, build_slot_sweep
from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.aws.telemetry import Telemetry
from asya.function.lambdas.environment import REAL, Environment
from asya.gateway.aws.ends_queue import EndsQueue
from asya.gateway.aws.refused_reports import RefusedReportStore
from asya.gateway.http.binding import routes_of
from asya.gateway.http.entry_point import HttpEntryPoint, HttpServices
from asya.gateway.http.router import HttpRoute
from asya.gateway.lambdas.deadline_sweep import DeadlineSweep
from asya.gateway.lambdas.ends_ages import EndsAges
from asya.gateway.lambdas.ingest import Ingest
from asya.gateway.lambdas.lost_sweep import LostSweep
from asya.gateway.lambdas.report_queues import ReportQueues, Writes
from asya.protocol import names
from asya.senders.lambdas.wiring import build_role_list
from asya.sidecar.lambdas.entry_point import queue_entry_point, schedule_entry_point
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.ends_marks import EndsMarks
from asya.tasks.aws.index import TaskIndex
from asya.tasks.aws.partials import PartialStore
from asya.tasks.aws.report_writer import ReportWriter
from asya.tasks.aws.sweep_marks import LostMarks, SweepMarks
from asya.tasks.aws.tasks import Tasks
from asya.tasks.aws.wiring import build_store, build_tasks
from asya.tasks.reporting.aws.foreign_reports import ForeignReports
from asya.tasks.reporting.aws.gateway_client import GatewayClient


def build_ingest(settings: Settings, telemetry: Telemetry, environment: Environment = REAL) -> Ingest:
    """Build the calls for reports."""
    return Ingest(
        writer=_report_writer(
            build_tasks(settings, telemetry.log.warning, environment), settings, telemetry, environment
        ),
    )


def build_report_queues(services: Services) -> ReportQueues:
    """Build the consumer of the report queues."""
    settings = services.settings
    telemetry, environment, warn = services.telemetry, services.environment, services.telemetry.log.warning
    tasks = build_tasks(settings, warn, environment, build_end_notices(settings, warn))
    return ReportQueues(
        services,
        Writes(services, _report_writer(tasks, settings, telemetry, environment)),
        ForeignReports(GatewayClient(services.credentials, settings.region)),
        RefusedReportStore(clients.s3(), settings.bucket),
        EndsAges(EndsMarks(clients.dynamodb(), settings.table_name("tasks")), telemetry, services.now),
        build_role_list(settings, services.now),
    )


def _report_writer(tasks: Tasks, settings: Settings, telemetry: Telemetry, environment: Environment) -> ReportWriter:
    return ReportWriter(
        tasks=tasks,
        partials=PartialStore(clients.dynamodb(), settings.table_name("tasks"), environment.sleep),
        warn=telemetry.log.warning,
    )


def build_deadline_sweep(services: Services) -> DeadlineSweep:
    """Build the deadline sweep of the mesh's tasks."""
    settings, environment = services.settings, services.environment
    client, table = clients.dynamodb(), settings.table_name("tasks")
    store = build_store(settings, environment)
    warn = services.telemetry.log.warning
    tasks = Tasks(store, warn, threaded=environment.is_threaded, on_ends=build_end_notices(settings, warn))
    index = TaskIndex(client, table, threaded=environment.is_threaded)
    ends = EndsQueue(clients.sqs(), settings.queue_url(names.ENDS), EndsMarks(client, table), environment)
    return DeadlineSweep(services, index, store, tasks, SweepMarks(client, table), ends)


def build_lost_sweep(services: Services) -> LostSweep:
    """Build the sweep of the mesh's lost tasks."""
    settings, environment = services.settings, services.environment
    client, table = clients.dynamodb(), settings.table_name("tasks")
    store = build_store(settings, environment)
    tasks = Tasks(store, services.telemetry.log.warning, threaded=environment.is_threaded)
    index = TaskIndex(client, table, threaded=environment.is_threaded)
    ends = EndsQueue(clients.sqs(), settings.queue_url(names.ENDS), EndsMarks(client, table), environment)
    return LostSweep(services, index, store, tasks, LostMarks(client, table), ends)


def report_routes(settings: Settings, ingest: Ingest) -> tuple[HttpRoute, ...]:
    """Return the routes of reports."""
    legacy = LegacyReportRoutes(ingest.tasks, ingest.accept_one)
    return routes_of(names.GATEWAY_INGEST, settings, [ingest, legacy])


def _build_ingest(own: HttpServices) -> tuple[HttpRoute, ...]:
    return report_routes(own.settings, build_ingest(own.settings, own.telemetry, own.environment))


def _build_api(own: HttpServices) -> tuple[HttpRoute, ...]:
    # Only the API imports every group of calls; this keeps the cold starts of the other functions short.
    from asya.gateway.lambdas.api_groups import build_api

    return build_api(own.settings, own.telemetry, own.environment, own.new_id)


ingest = HttpEntryPoint(_build_ingest)
api = HttpEntryPoint(_build_api)
# Thousands of overdue tasks may take all the time of the function. Readers see them as failed anyway, but slots that wait too
# long are missed. So slots and backfills come first; each is one query.
deadline_sweep = schedule_entry_point(
    build_slot_sweep, build_backfill_sweep, build_deadline_sweep, build_lane_sweep, build_lost_sweep
)
report_queues = queue_entry_point(build_report_queues)
