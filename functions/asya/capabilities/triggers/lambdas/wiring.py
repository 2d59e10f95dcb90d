"""The Lambda handler of `x-triggers`, and the sweeps of slots, lanes and backfills."""

from asya.capabilities.cancels.lambdas.wiring import build_task_cancels
from asya.capabilities.triggers.aws.backfills import Backfills
from asya.capabilities.triggers.aws.lane_checks import LaneChecks
from asya.capabilities.triggers.aws.lane_store import LaneStore
from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.aws.slot_sender import SlotSender
from asya.capabilities.triggers.aws.webhook_queue import WebhookBodies
from asya.capabilities.triggers.lambdas.backfill_runner import BackfillRunner
from asya.capabilities.triggers.lambdas.backfill_sweep import BackfillSweep
from asya.capabilities.triggers.lambdas.lane_queue import LaneQueue
from asya.capabilities.triggers.lambdas.lane_starts import LaneStarts
from asya.capabilities.triggers.lambdas.lane_sweep import LaneSweep
from asya.capabilities.triggers.lambdas.occurrence_starts import OccurrenceStarts
from asya.capabilities.triggers.lambdas.slot_sweep import SlotSweep
from asya.capabilities.triggers.lambdas.traces import Traces
from asya.capabilities.triggers.lambdas.triggers import TriggerQueue
from asya.function.aws import clients
from asya.function.aws.claim_check import ClaimCheck
from asya.function.aws.failed_messages import FailedMessages
from asya.function.aws.settings import Settings
from asya.function.aws.submission_sender import SubmissionSender
from asya.function.lambdas.batch import BatchProcessor
from asya.function.lambdas.environment import Environment
from asya.protocol import names
from asya.protocol.keys import INBOX_PREFIX
from asya.sidecar.lambdas.entry_point import queue_entry_point
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.tasks import Tasks
from asya.tasks.aws.wiring import build_store
from asya.tasks.starts.aws.idempotency_keys import IdempotencyKeys
from asya.tasks.starts.aws.task_starter import TaskStarter


def build_triggers(services: Services) -> TriggerQueue:
    """Build the function that starts the tasks of triggers."""
    settings, environment, warn = services.settings, services.environment, services.telemetry.log.warning
    url = settings.queue_url(names.TRIGGERS)
    table = settings.table_name("tasks")
    bodies = WebhookBodies(clients.s3(), settings.bucket)
    offload = ClaimCheck(clients.s3(), settings.bucket, prefix=INBOX_PREFIX).offload
    store = build_store(settings, environment)
    tasks = Tasks(store, warn, threaded=environment.is_threaded)
    starter = TaskStarter(
        tasks=tasks,
        keys=IdempotencyKeys(clients.dynamodb(), table, settings.table.retention.tasks, names.TRIGGERS),
        sender=SubmissionSender(clients.sqs(), settings.queue_url, offload),
        warn=warn,
    )
    failed = FailedMessages(clients.sqs(), f"{url}-dlq")
    starts = OccurrenceStarts(services, starter, environment.new_span)
    cancels = build_task_cancels(settings, tasks, store, environment, warn)
    lane_store = _lane_store(settings, environment)
    lanes = LaneQueue(
        services=services,
        store=lane_store,
        records=store,
        starter=starter,
        starts=LaneStarts(services, lane_store, cancels, failed, starts.start),
        checks=LaneChecks(clients.sqs(), url, warn),
    )
    worker = BatchProcessor(clients.sqs(), url, (), services.telemetry)
    states, backfills = (
        ScheduleStates(clients.dynamodb(), table),
        BackfillRunner(services, build_backfills(settings), store),
    )
    return TriggerQueue(services, worker, starts, lanes, failed, states, backfills, Traces(services, store), bodies)


def build_slot_sweep(services: Services) -> SlotSweep:
    """Build the sweep of slots."""
    settings = services.settings
    return SlotSweep(
        services,
        ScheduleStates(clients.dynamodb(), settings.table_name("tasks")),
        SlotSender(clients.sqs(), settings.queue_url(names.TRIGGERS)),
    )


def build_lane_sweep(services: Services) -> LaneSweep:
    """Build the sweep of lanes."""
    settings, environment, warn = services.settings, services.environment, services.telemetry.log.warning
    checks = LaneChecks(clients.sqs(), settings.queue_url(names.TRIGGERS), warn)
    return LaneSweep(services, _lane_store(settings, environment), build_store(settings, environment), checks)


def _lane_store(settings: Settings, environment: Environment) -> LaneStore:
    retention = settings.table.retention.tasks
    return LaneStore(clients.dynamodb(), settings.table_name("tasks"), retention, environment.sleep)


def build_backfills(settings: Settings) -> Backfills:
    """Build the states of the backfills of a mesh."""
    return Backfills(clients.dynamodb(), settings.table_name("tasks"), settings.table.retention.tasks)


def build_backfill_sweep(services: Services) -> BackfillSweep:
    """Build the sweep of backfills."""
    settings = services.settings
    return BackfillSweep(services, build_backfills(settings), clients.sqs(), settings.queue_url(names.TRIGGERS))


triggers = queue_entry_point(build_triggers)
