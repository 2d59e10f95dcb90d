"""Sends required reports before their messages are acknowledged (`protocol §5`, reports)."""

from asya.function.aws.receipt import Receipt
from asya.protocol import names
from asya.protocol.events import TaskEvent
from asya.tasks.reporting.aws.progress_reporter import ProgressReporter
from asya.tasks.reporting.aws.report_sender import QueuedReport, ReportSender
from asya.tasks.reporting.report_messages import queue_of


class RequiredReports:
    """Collects required reports. A message is acknowledged only if the receipts of its reports have no error.

    Args:
        progress: the reporter that shares its messages with registrations; they go to the same queue.
    """

    def __init__(self, sender: ReportSender, progress: ProgressReporter) -> None:
        self._sender = sender
        self._progress = progress
        self._waiting: list[QueuedReport] = []

    def report(self, base_url: str, event: TaskEvent) -> Receipt:
        """Queue a report and return its receipt."""
        if queue_of(event) == names.REPORTS:
            return self._progress.require(base_url, event)
        receipt = Receipt("report")
        self._waiting.append(self._sender.queued(base_url, event, receipt))
        return receipt

    def flush(self) -> None:
        """Send all queued reports and resolve their receipts; progress leaves with registrations only."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._sender.send(waiting)
        self._progress.flush_required()
