"""Progress reports: never blocking, never failing a message; bounded tries, then dropped and counted (`protocol §5`, reports)."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable

from asya.protocol.events import Report
from asya.reporting.aws.gateway_client import GatewayClient

# Reports of one hop leave together, as one write, unless its handler takes longer than this.
LINGER_SECONDS = 1.0
# What handlers say to those who look on (FLY) waits no longer than this, and all that came before it leaves with it.
PARTIAL_LINGER_SECONDS = 0.2
# More of it than this does not wait at all: a handler may say things faster than anybody can take them.
PARTIAL_BUFFER_LIMIT = 5_000
TRIES = 2
SECONDS_PER_TRY = 2.0
BATCH_LIMIT = 100


class ProgressReporter:
    """Gathers events and reports them in batches from a thread of its own; `flush` waits for the rest, a bounded time.

    Where threads are not wanted (`threaded` is false), `flush` is what reports.
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
        """Hand over an event; returns at once."""
        is_fly = event.type == "fly"
        with self._changed:
            if is_fly and len(self._waiting) >= PARTIAL_BUFFER_LIMIT:
                self._overflow += 1
                return
            due = time.monotonic() + (PARTIAL_LINGER_SECONDS if is_fly else LINGER_SECONDS)
            self._due = min(self._due, due) if self._waiting else due
            self._waiting.append((base_url, event))
            if self._threaded and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._run, name="progress-reporter", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, seconds: float = TRIES * SECONDS_PER_TRY + 1) -> None:
        """Send what waits and return when it is gone, or when the time is up: the rest is dropped."""
        self._tell_overflow()
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

    def _tell_overflow(self) -> None:
        overflow, self._overflow = self._overflow, 0
        if overflow:
            self._on_dropped(overflow, "handlers said more (FLY) than the gateway could be told")

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
                    self._due = time.monotonic()  # of what is left: it has waited long enough
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
            except Exception as error:  # noqa: BLE001 - whatever it is, it may cost a report, never the reporter
                problem = str(error)
                continue
            events = [event for event, result in zip(events, results, strict=True) if result.status >= 500]
            if not events:
                return
            problem = "the endpoint could not write them"
        self._on_dropped(len(events), problem)
