"""Reports that must arrive: one call for a whole batch, and for each report whether it was taken (`protocol §5`, reports)."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from asya.messaging.aws.receipt import Receipt
from asya.protocol.events import EventResult, TaskEvent
from asya.reporting.aws.gateway_client import GatewayClient, GatewayError, is_settled

# The endpoint may be starting, in as many copies as there are callers: what is too slow for progress is not too slow for these.
SECONDS_FOR_A_CALL = 8.0
_FIRST_PAUSE = 0.5

_Pair = tuple[TaskEvent, Receipt]
_Left = tuple[_Pair, GatewayError]


class Clock(Protocol):
    """What waiting takes."""

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


@dataclass(frozen=True, slots=True)
class RetryWindow:
    """How long to go on trying before the message pays for it with a receive.

    Attributes:
        seconds: after the first try, in which others may begin.
    """

    seconds: float
    clock: Clock

    def tries(self) -> Iterator[None]:
        """Wait, more each time, and let another try be made, as long as there is time."""
        until, pause = self.clock.monotonic() + self.seconds, _FIRST_PAUSE
        while self.clock.monotonic() + pause < until:
            self.clock.sleep(pause)
            yield
            pause *= 2


class RequiredReports:
    """Gathers reports; a message may be acked only when the tickets of its reports are settled without an error.

    Args:
        on_refused: is told of reports that the endpoint will never take (400, 404); they count as taken.
        retry_window: how long to try; None for once.
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
        """Hand over a report."""
        receipt = Receipt("report")
        self._waiting[base_url].append((event, receipt))
        return receipt

    def flush(self) -> None:
        """Make every report that waits, one call per endpoint, and settle the tickets.

        What is not taken is tried again while there is retry_window: a busy endpoint is no reason to have messages received again.
        """
        waiting, self._waiting = self._waiting, defaultdict(list)
        left = self._make_all(waiting)
        if left and self._retry_window:
            for _ in self._retry_window.tries():
                left = self._make_all({base_url: [pair for pair, _ in some] for base_url, some in left.items()})
                if not left:
                    return
        for some in left.values():
            for (_, receipt), problem in some:
                receipt.resolve(problem)

    def _make_all(self, waiting: Mapping[str, Sequence[_Pair]]) -> dict[str, list[_Left]]:
        """One call per endpoint; what was not taken, and why."""
        left = {base_url: self._make(base_url, pairs) for base_url, pairs in waiting.items()}
        return {base_url: some for base_url, some in left.items() if some}

    def _make(self, base_url: str, pairs: Sequence[_Pair]) -> list[_Left]:
        try:
            results = self._client.report(base_url, [event for event, _ in pairs], seconds=SECONDS_FOR_A_CALL)
        except GatewayError as error:
            return [(pair, error) for pair in pairs]
        left: list[_Left] = []
        for pair, result in zip(pairs, results, strict=True):
            event, receipt = pair
            if not is_settled(result):
                problem = f"the report on {event.id} was answered {result.status}: {result.error or 'no reason given'}"
                left.append((pair, GatewayError(problem)))
                continue
            if result.status != 204 and self._on_refused is not None:
                self._on_refused(result)
            receipt.resolve()
        return left
