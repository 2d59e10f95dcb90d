"""Sends progress reports in the background, without blocking or failing a message (`protocol §5`, reports)."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable

from asya.protocol.events import Report
from asya.reporting.aws.gateway_client import GatewayClient

# The reports of one hop leave in one call, unless its handler takes longer than this.
LINGER_SECONDS = 1.0
# A partial waits at most this long; all earlier reports leave with it.
PARTIAL_LINGER_SECONDS = 0.2
# Further partials are dropped: a handler may publish faster than the gateway accepts.
PARTIAL_BUFFER_LIMIT = 5_000
TRIES = 2
SECONDS_PER_TRY = 2.0
BATCH_LIMIT = 100


class ProgressReporter:
    """Collects events and reports them in batches from its own thread.

    Args:
        on_dropped: called with the number of dropped reports and the cause.
        threaded: whether the thread runs; without it, `flush` sends the reports.
    """

    def __init__(self, client: GatewayClient, on_dropped: Callable[[int, str], None], *, threaded: bool = True) -> None:
        self._client = client
        self._on_dropped = on_dropped
        self._threaded = threaded
        self._waiting: list[tuple[str, Report]] = []
        self._due = 0.0
        self._overflow = 0
        self._sending = 0
        self._flushing = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def report(self, base_url: str, event: Report) -> None:
        """Queue an event and return at once."""
        is_partial = event.type == "fly"
        with self._changed:
            if is_partial and len(self._waiting) >= PARTIAL_BUFFER_LIMIT:
                self._overflow += 1
                return
            due = time.monotonic() + (PARTIAL_LINGER_SECONDS if is_partial else LINGER_SECONDS)
            self._due = min(self._due, due) if self._waiting else due
            self._waiting.append((base_url, event))
            if self._threaded and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._run, name="progress-reporter", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, seconds: float = TRIES * SECONDS_PER_TRY + 1) -> None:
        """Send all queued reports; reports that are not sent within the time limit are dropped."""
        self._report_overflow()
        if not self._threaded:
            self._send_all(self._take_all())
            return
        with self._changed:
            self._flushing = True
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: not self._waiting and not self._sending, timeout=seconds)
            self._flushing = False
            if not done:
                dropped, self._waiting = len(self._waiting), []
                if dropped:
                    self._on_dropped(dropped, f"not sent within {seconds} s")

    def _report_overflow(self) -> None:
        overflow, self._overflow = self._overflow, 0
        if overflow:
            self._on_dropped(overflow, "handlers published more partials (FLY) than the gateway accepts")

    def _run(self) -> None:
        while True:
            self._send_all(self._next_batch())
            with self._changed:
                self._sending = 0
                self._changed.notify_all()

    def _next_batch(self) -> list[tuple[str, Report]]:
        with self._changed:
            while True:
                self._changed.wait_for(lambda: bool(self._waiting))
                wait = self._due - time.monotonic()
                if self._flushing or wait <= 0 or len(self._waiting) >= BATCH_LIMIT:
                    batch, self._waiting = self._waiting[:BATCH_LIMIT], self._waiting[BATCH_LIMIT:]
                    self._due = time.monotonic()  # the remaining reports are due too
                    self._sending = len(batch)
                    return batch
                self._changed.wait(wait)

    def _take_all(self) -> list[tuple[str, Report]]:
        batch, self._waiting = self._waiting, []
        return batch

    def _send_all(self, batch: list[tuple[str, Report]]) -> None:
        by_url: dict[str, list[Report]] = defaultdict(list)
        for base_url, event in batch:
            by_url[base_url].append(event)
        for base_url, events in by_url.items():
            self._send(base_url, events)

    def _send(self, base_url: str, events: list[Report]) -> None:
        problem = ""
        for _ in range(TRIES):
            try:
                results = self._client.report(base_url, events, seconds=SECONDS_PER_TRY)
            except Exception as error:  # noqa: BLE001 - an error may lose reports, never stop the reporter
                problem = str(error)
                continue
            events = [event for event, result in zip(events, results, strict=True) if result.status >= 500]
            if not events:
                return
            problem = "the endpoint could not write them"
        self._on_dropped(len(events), problem)
