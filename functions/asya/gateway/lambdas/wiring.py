"""The Lambda handlers of the gateway that answer no calls: `report_queues`, and `deadline_sweep`.

The last one sends the slots of triggers, looks at their lanes, and moves backfills on too.
"""

from asya.capabilities.triggers.aws.queue_senders import build_end_notices
from asya.capabilities.triggers.lambdas.wiring import build_backfill_sweep, build_lane_sweep, build_slot_sweep
from asya.ends.aws.results import ResultIndex, Results
from asya.function.aws import clients
from asya.gateway.aws.ends_queue import EndsQueue
from asya.gateway.aws.refused_reports import RefusedReportStore
from asya.gateway.lambdas.report_queues import EndsAges, ReportQueues, Writes
from asya.gateway.lambdas.task_sweeps import DeadlineSweep, LostSweep
from asya.protocol import names
from asya.senders.lambdas.wiring import build_role_list
from asya.sidecar.lambdas.entry_point import queue_entry_point, schedule_entry_point
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.lasting import LastingTasks
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.aws.sweep_marks import EndsMarks, LostMarks, SweepMarks
from asya.tasks.reporting.aws.foreign_reports import ForeignReports
from asya.tasks.reporting.aws.gateway_client import GatewayClient


def build_report_queues(services: Services) -> ReportQueues:
    """Build the consumer of the report queues."""
    settings = services.settings
    stored = StoredTasks(services, build_end_notices(services))
    return ReportQueues(
        services,
        Writes(services, stored.writer),
        ForeignReports(GatewayClient(services.credentials, settings.region)),
        RefusedReportStore(clients.s3(), settings.bucket),
        EndsAges(_ends_marks(services), services.telemetry, services.now),
        build_role_list(services),
        ResultIndex(Results(clients.results_s3(settings.table.sink.endpoint), settings.results_uri)),
    )


def build_deadline_sweep(services: Services) -> DeadlineSweep:
    """Build the deadline sweep of the mesh's tasks."""
    stored = StoredTasks(services, build_end_notices(services))
    marks = SweepMarks(clients.dynamodb(), services.settings.table_name("tasks"))
    lasting = LastingTasks(stored.index, stored.store, services.environment.is_threaded)
    return DeadlineSweep(services, stored.index, stored.store, stored.tasks, marks, _ends_queue(services), lasting)


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


# Thousands of overdue tasks may take all the time of the function. Readers see them as failed anyway, but slots that wait too
# long are missed. So slots and backfills come first; each is one query.
deadline_sweep = schedule_entry_point(
    build_slot_sweep, build_backfill_sweep, build_deadline_sweep, build_lane_sweep, build_lost_sweep
)
report_queues = queue_entry_point(build_report_queues)
