"""The Lambda handler of `x-triggers`, and the sweeps of slots, lanes and backfills."""

from asya.capabilities.cancels.lambdas.task_cancels import build_task_cancels
from asya.capabilities.triggers.aws.backfills import Backfills
from asya.capabilities.triggers.aws.lane_store import LaneStore
from asya.capabilities.triggers.aws.queue_senders import LaneChecks, SlotSender
from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.aws.webhook_queue import WebhookBodies
from asya.capabilities.triggers.lambdas.backfill_runner import BackfillRunner
from asya.capabilities.triggers.lambdas.lane_queue import LaneQueue
from asya.capabilities.triggers.lambdas.starts import LaneStarts, OccurrenceStarts
from asya.capabilities.triggers.lambdas.sweeps import BackfillSweep, LaneSweep, SlotSweep
from asya.capabilities.triggers.lambdas.triggers import Traces, TriggerQueue
from asya.function.aws import clients
from asya.function.aws.failed_messages import FailedMessages
from asya.function.lambdas.batch import BatchProcessor
from asya.function.lambdas.function import Function
from asya.protocol import names
from asya.sidecar.lambdas.entry_point import queue_entry_point
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.starts.aws.idempotency_keys import IdempotencyKeys
from asya.tasks.starts.aws.task_starter import TaskStarter


def build_triggers(services: Services) -> TriggerQueue:
    """Build the function that starts the tasks of triggers."""
    settings = services.settings
    url, table = settings.queue_url(names.TRIGGERS), settings.table_name("tasks")
    bodies = WebhookBodies(clients.s3(), settings.bucket)
    stored = StoredTasks(services)
    store = stored.store
    starter = TaskStarter(
        tasks=stored.tasks,
        keys=IdempotencyKeys(clients.dynamodb(), table, settings.table.retention.tasks, names.TRIGGERS),
        sender=services.submissions(services.keys.seal),
        warn=services.warn,
    )
    failed = FailedMessages(clients.sqs(), f"{url}-dlq")
    starts = OccurrenceStarts(services, starter, services.environment.new_span)
    cancels = build_task_cancels(services, stored, services.keys.seal)
    lane_store = build_lane_store(services)
    lanes = LaneQueue(
        services=services,
        store=lane_store,
        records=store,
        starter=starter,
        starts=LaneStarts(services, lane_store, cancels, failed, starts.start),
        checks=LaneChecks(clients.sqs(), url, services.warn),
    )
    worker = BatchProcessor(clients.sqs(), url, (), services.telemetry)
    states, backfills = build_schedule_states(services), BackfillRunner(services, build_backfills(services), store)
    return TriggerQueue(services, worker, starts, lanes, failed, states, backfills, Traces(services, store), bodies)


def build_slot_sweep(own: Function) -> SlotSweep:
    """Build the sweep of slots."""
    sender = SlotSender(clients.sqs(), own.settings.queue_url(names.TRIGGERS))
    return SlotSweep(own, build_schedule_states(own), sender)


def build_lane_sweep(services: Services) -> LaneSweep:
    """Build the sweep of lanes."""
    checks = LaneChecks(clients.sqs(), services.settings.queue_url(names.TRIGGERS), services.warn)
    return LaneSweep(services, build_lane_store(services), StoredTasks(services).store, checks)


def build_backfill_sweep(services: Services) -> BackfillSweep:
    """Build the sweep of backfills."""
    queue_url = services.settings.queue_url(names.TRIGGERS)
    return BackfillSweep(services, build_backfills(services), clients.sqs(), queue_url)


def build_schedule_states(own: Function) -> ScheduleStates:
    """Build the states of the schedules of a mesh."""
    return ScheduleStates(clients.dynamodb(), own.settings.table_name("tasks"))


def build_lane_store(own: Function) -> LaneStore:
    """Build the lanes of a mesh."""
    settings = own.settings
    retention = settings.table.retention.tasks
    return LaneStore(clients.dynamodb(), settings.table_name("tasks"), retention, own.environment.sleep)


def build_backfills(own: Function) -> Backfills:
    """Build the states of the backfills of a mesh."""
    return Backfills(clients.dynamodb(), own.settings.table_name("tasks"), own.settings.table.retention.tasks)


triggers = queue_entry_point(build_triggers)
