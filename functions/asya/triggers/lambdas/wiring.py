"""The Lambda handler of `x-triggers`, and the sweep of slots."""

from asya.messaging.aws import clients
from asya.messaging.aws.claim_check import ClaimCheck
from asya.messaging.aws.submission_sender import SubmissionSender
from asya.messaging.claim_check import INBOX_PREFIX
from asya.messaging.lambdas.batch import BatchProcessor
from asya.protocol import names
from asya.sidecar.lambdas.entry_point import queue_entry_point
from asya.sidecar.lambdas.services import Services
from asya.starts.aws.idempotency_keys import IdempotencyKeys
from asya.starts.aws.task_starter import TaskStarter
from asya.tasks.aws.tasks import Tasks
from asya.tasks.aws.wiring import build_store
from asya.triggers.aws.failed_messages import FailedMessages
from asya.triggers.aws.schedule_states import ScheduleStates
from asya.triggers.aws.slot_sender import SlotSender
from asya.triggers.lambdas.slot_sweep import SlotSweep
from asya.triggers.lambdas.triggers import TriggerQueue


def build_triggers(services: Services) -> TriggerQueue:
    """Build the function that starts the tasks of triggers."""
    settings, environment, warn = services.settings, services.environment, services.telemetry.log.warning
    url = settings.queue_url(names.TRIGGERS)
    table = settings.table_name("tasks")
    offload = ClaimCheck(clients.s3(), settings.bucket, prefix=INBOX_PREFIX).offload
    starter = TaskStarter(
        tasks=Tasks(build_store(settings, environment), warn, threaded=environment.is_threaded),
        keys=IdempotencyKeys(clients.dynamodb(), table, settings.table.retention.tasks),
        sender=SubmissionSender(clients.sqs(), settings.queue_url, offload),
        warn=warn,
    )
    return TriggerQueue(
        services=services,
        worker=BatchProcessor(clients.sqs(), url, (), services.telemetry),
        starter=starter,
        failed=FailedMessages(clients.sqs(), f"{url}-dlq"),
        new_span=environment.new_span,
    )


def build_slot_sweep(services: Services) -> SlotSweep:
    """Build the sweep of slots."""
    settings = services.settings
    return SlotSweep(
        services,
        ScheduleStates(clients.dynamodb(), settings.table_name("tasks")),
        SlotSender(clients.sqs(), settings.queue_url(names.TRIGGERS)),
    )


triggers = queue_entry_point(build_triggers)
