"""Sends reports: progress in the background, required ones before acknowledgement (`protocol §5`, reports)."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from asya.function.aws.outbox import Outbox
from asya.function.aws.receipt import Receipt
from asya.function.hop import Delivery
from asya.protocol import names
from asya.protocol.events import Report, TaskEvent
from asya.tasks.reporting.report_messages import EncodedReport, body, encoded, messages, queue_of

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class QueuedReport(msgspec.Struct, frozen=True):
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


# The reports of one batch leave in one message, unless a handler takes longer than this.
LINGER_SECONDS = 1.0
# A partial waits at most this long; all earlier reports leave with it.
PARTIAL_LINGER_SECONDS = 0.2
# Further partials are dropped: a handler may publish faster than SQS accepts.
PARTIAL_BUFFER_LIMIT = 5_000
FLUSH_SECONDS = 5.0
# Reports that wait longer than their linger time, beyond which they leave at once.
BATCH_LIMIT = 1_000


class ProgressReporter:
    """Collects reports and sends them together: at the flush, or from its own thread while a slow handler runs.

    Args:
        on_dropped: called with the number of dropped reports and the cause.
        threaded: whether the thread runs; without it, `flush` sends the reports.
    """

    def __init__(self, sender: ReportSender, on_dropped: Callable[[int, str], None], *, threaded: bool = True) -> None:
        self._sender = sender
        self._on_dropped = on_dropped
        self._threaded = threaded
        self._waiting: list[QueuedReport] = []
        self._due = 0.0
        self._overflow = 0
        self._sending = 0
        self._flushing = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def report(self, base_url: str, event: Report) -> None:
        """Queue a report and return at once."""
        is_partial = event.type == "fly"
        if is_partial and len(self._waiting) >= PARTIAL_BUFFER_LIMIT:
            self._overflow += 1
            return
        seconds = PARTIAL_LINGER_SECONDS if is_partial else LINGER_SECONDS
        self._add(self._sender.queued(base_url, event), seconds)

    def require(self, base_url: str, event: Report) -> Receipt:
        """Queue a report that must arrive, and return its receipt."""
        receipt = Receipt("report")
        self._add(self._sender.queued(base_url, event, receipt), LINGER_SECONDS)
        return receipt

    def flush_required(self) -> None:
        """Send everything if a required report waits; on return, all receipts so far are resolved."""
        with self._changed:
            is_required = self._sending or any(report.receipt is not None for report in self._waiting)
        if is_required:
            self.flush()

    def flush(self, seconds: float = FLUSH_SECONDS) -> None:
        """Send all queued reports; reports that are not sent within the time limit are dropped."""
        self._report_overflow()
        if not self._threaded:
            self._send(self._take_all())
            return
        with self._changed:
            self._flushing = True
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: not self._waiting and not self._sending, timeout=seconds)
            self._flushing = False
            late = [] if done else self._take_all()
        if late:
            self._drop(late, f"not sent within {seconds} s")

    def _add(self, report: QueuedReport, seconds: float) -> None:
        with self._changed:
            due = time.monotonic() + seconds
            self._due = min(self._due, due) if self._waiting else due
            self._waiting.append(report)
            if self._threaded and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._run, name="progress-reporter", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _report_overflow(self) -> None:
        overflow, self._overflow = self._overflow, 0
        if overflow:
            self._on_dropped(overflow, "handlers published more partials (FLY) than the report queue accepts")

    def _drop(self, reports: list[QueuedReport], problem: str) -> None:
        error = TimeoutError(problem)
        for report in reports:
            if report.receipt is not None:
                report.receipt.resolve(error)
        if dropped := sum(report.receipt is None for report in reports):
            self._on_dropped(dropped, problem)

    def _run(self) -> None:
        while True:
            self._send(self._next_batch())
            with self._changed:
                self._sending = 0
                self._changed.notify_all()

    def _next_batch(self) -> list[QueuedReport]:
        with self._changed:
            while True:
                self._changed.wait_for(lambda: bool(self._waiting))
                wait = self._due - time.monotonic()
                if self._flushing or wait <= 0 or len(self._waiting) >= BATCH_LIMIT:
                    batch = self._take_all()
                    self._sending = len(batch)
                    return batch
                self._changed.wait(wait)

    def _take_all(self) -> list[QueuedReport]:
        batch, self._waiting = self._waiting, []
        return batch

    def _send(self, batch: list[QueuedReport]) -> None:
        try:
            lost, problem = self._sender.send(batch)
        except Exception as error:  # noqa: BLE001 - an error may lose reports, never stop the reporter
            self._drop(batch, str(error))
            return
        if lost:
            self._on_dropped(lost, problem)


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
