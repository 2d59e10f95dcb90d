"""The Lambda entry point of the DLQ function."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from asya.capabilities.dead_letters.aws.copies import DeadLetterCopies
from asya.capabilities.dead_letters.aws.queue import DeadLetterQueue
from asya.capabilities.dead_letters.aws.report_marks import ReportMarks
from asya.capabilities.dead_letters.lambdas.dlq import DeadLetterWatch, queues_to_scan
from asya.function.aws import clients
from asya.sidecar.lambdas.entry_point import ScheduleEntryPoint
from asya.sidecar.lambdas.services import Services, services
from asya.tasks.aws.stored_tasks import StoredTasks


def build_dlq(services: Services) -> DeadLetterWatch:
    """Build the watch over this mesh's dead-letter queues."""
    settings = services.settings
    return DeadLetterWatch(
        services,
        lambda actor: DeadLetterQueue(clients.sqs(), settings.dlq_url(actor)),
        ReportMarks(clients.dynamodb(), settings.table_name("sink")),
        DeadLetterCopies(clients.s3(), settings.bucket),
        StoredTasks(services).store,
    )


class _Dlq(ScheduleEntryPoint):
    """Handles changes of state of alarms, too. All invocations of a process share the watch."""

    def __call__(self, event: Mapping[str, Any], _context: object) -> None:
        watch = _built()
        watch.scan(queues_to_scan(event, watch.services))


@cache
def _built() -> DeadLetterWatch:
    return build_dlq(services())


dlq = _Dlq([build_dlq])
