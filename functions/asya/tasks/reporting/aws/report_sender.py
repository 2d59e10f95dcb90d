"""Sends reports to the report queues of the mesh (`protocol §5`, reports)."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asya.function.aws.outbox import Outbox
from asya.function.aws.receipt import Receipt
from asya.function.delivery import Delivery
from asya.protocol.events import Report
from asya.tasks.reporting.report_messages import EncodedReport, body, encoded, messages

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True, slots=True)
class QueuedReport:
    """A report that waits for its message; a progress report has no receipt, because no message waits for it."""

    report: EncodedReport
    receipt: Receipt | None = None

    @property
    def size(self) -> int:
        """Bytes in the body of a message."""
        return self.report.size


class ReportSender:
    """Sends reports in as few requests as possible.

    Args:
        queue_url: the URL of a queue by its name in the mesh, such as `x-reports`.
        own_gateway: the URL of the mesh's own gateway; reports for another one name it.
    """

    def __init__(self, sqs: "SQSClient", queue_url: Callable[[str], str], own_gateway: str | None) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._own_gateway = own_gateway

    def queued(self, base_url: str, event: Report, receipt: Receipt | None = None) -> QueuedReport:
        """Encode a report for a gateway."""
        gateway_url = base_url if base_url != self._own_gateway else None
        return QueuedReport(encoded(event, gateway_url), receipt)

    def send(self, reports: Sequence[QueuedReport]) -> tuple[int, str]:
        """Send reports and resolve their receipts.

        Returns:
            the number of reports without a receipt that SQS did not accept, and the cause.
        """
        outbox = Outbox(self._sqs, self._queue_url, threaded=False)
        by_queue: dict[str, list[QueuedReport]] = defaultdict(list)
        for each in reports:
            by_queue[each.report.queue].append(each)
        sent = [
            (message, outbox.send(Delivery(queue, body(message), "report")))
            for queue, group in by_queue.items()
            for message in messages(group)
        ]
        outbox.flush()
        lost, cause = 0, ""
        for message, outcome in sent:
            problem = outcome.problem
            for each in message:
                if each.receipt is not None:
                    each.receipt.resolve(problem)
            if problem is not None:
                lost, cause = lost + sum(each.receipt is None for each in message), str(problem)
        return lost, cause
