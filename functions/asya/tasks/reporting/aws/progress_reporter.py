"""Sends progress reports in the background, without blocking or failing a message (`protocol §5`, reports)."""

import threading
import time
from collections.abc import Callable

from asya.function.aws.receipt import Receipt
from asya.protocol.events import Report
from asya.tasks.reporting.aws.report_sender import QueuedReport, ReportSender

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
