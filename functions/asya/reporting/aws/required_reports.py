"""Sends required reports, one call for a whole batch, and resolves a receipt for each (`protocol §5`, reports)."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from asya.messaging.aws.receipt import Receipt
from asya.protocol.events import EventResult, TaskEvent
from asya.reporting.aws.gateway_client import GatewayClient, GatewayError, is_final

# Longer than for progress reports: the endpoint may have a cold start for each caller.
SECONDS_FOR_A_CALL = 8.0
_FIRST_BACKOFF = 0.5

_Pair = tuple[TaskEvent, Receipt]
_Failure = tuple[_Pair, GatewayError]


class Clock(Protocol):
    """The clock of retries."""

    def monotonic(self) -> float:
        """Seconds since an unspecified start; the value never decreases."""

    def sleep(self, seconds: float) -> None:
        """Wait, with jitter."""


@dataclass(frozen=True, slots=True)
class RetryWindow:
    """How long a required report is retried, with exponential backoff; after that its message is kept.

    Attributes:
        seconds: the time after the first try in which retries may start.
    """

    seconds: float
    clock: Clock

    def tries(self) -> Iterator[None]:
        """Wait for the backoff before each retry, and yield once per retry."""
        until, backoff = self.clock.monotonic() + self.seconds, _FIRST_BACKOFF
        while self.clock.monotonic() + backoff < until:
            self.clock.sleep(backoff)
            yield
            backoff *= 2


class RequiredReports:
    """Collects required reports. A message is acknowledged only if the receipts of its reports have no error.

    Args:
        on_refused: called with each report that the endpoint refuses for good (400, 404); it counts as accepted.
        retry_window: the time for retries; None for a single try.
    """

    def __init__(
        self,
        client: GatewayClient,
        on_refused: Callable[[EventResult], None] | None = None,
        retry_window: RetryWindow | None = None,
    ) -> None:
        self._client = client
        self._on_refused = on_refused
        self._retry_window = retry_window
        self._waiting: dict[str, list[_Pair]] = defaultdict(list)

    def report(self, base_url: str, event: TaskEvent) -> Receipt:
        """Queue a report and return its receipt."""
        receipt = Receipt("report")
        self._waiting[base_url].append((event, receipt))
        return receipt

    def flush(self) -> None:
        """Send all queued reports, one call for each endpoint, and resolve their receipts.

        Failed reports are retried within the retry window, so a busy endpoint does not cause further receives.
        """
        waiting, self._waiting = self._waiting, defaultdict(list)
        failures = self._send_all(waiting)
        if failures and self._retry_window:
            for _ in self._retry_window.tries():
                failures = self._send_all(
                    {base_url: [pair for pair, _ in group] for base_url, group in failures.items()}
                )
                if not failures:
                    return
        for group in failures.values():
            for (_, receipt), problem in group:
                receipt.resolve(problem)

    def _send_all(self, waiting: Mapping[str, Sequence[_Pair]]) -> dict[str, list[_Failure]]:
        """Send reports, one call for each endpoint, and return the failed ones with their errors."""
        failures = {base_url: self._send(base_url, pairs) for base_url, pairs in waiting.items()}
        return {base_url: group for base_url, group in failures.items() if group}

    def _send(self, base_url: str, pairs: Sequence[_Pair]) -> list[_Failure]:
        try:
            results = self._client.report(base_url, [event for event, _ in pairs], seconds=SECONDS_FOR_A_CALL)
        except GatewayError as error:
            return [(pair, error) for pair in pairs]
        failures: list[_Failure] = []
        for pair, result in zip(pairs, results, strict=True):
            event, receipt = pair
            if not is_final(result):
                problem = f"the report on {event.id} was answered {result.status}: {result.error or 'no reason given'}"
                failures.append((pair, GatewayError(problem)))
                continue
            if result.status != 204 and self._on_refused is not None:
                self._on_refused(result)
            receipt.resolve()
        return failures
