"""Reports that must arrive: one call for a whole batch, and for each report whether it was taken (`protocol §5`, reports)."""

from collections import defaultdict
from collections.abc import Callable

from asya.aws.gateway_client import GatewayClient, GatewayError, is_settled
from asya.aws.ticket import Ticket
from asya.protocol.events import EventResult, TaskEvent


class SureReports:
    """Gathers reports; a message may be acked only when the tickets of its reports are settled without an error.

    Args:
        on_refused: is told of reports that the endpoint will never take (400, 404); they count as taken.
    """

    def __init__(self, client: GatewayClient, on_refused: Callable[[EventResult], None] | None = None) -> None:
        self._client = client
        self._on_refused = on_refused
        self._waiting: dict[str, list[tuple[TaskEvent, Ticket]]] = defaultdict(list)

    def report(self, base_url: str, event: TaskEvent) -> Ticket:
        """Hand over a report."""
        ticket = Ticket("report")
        self._waiting[base_url].append((event, ticket))
        return ticket

    def flush(self) -> None:
        """Make every report that waits, one call per endpoint, and settle the tickets."""
        waiting, self._waiting = self._waiting, defaultdict(list)
        for base_url, pairs in waiting.items():
            try:
                results = self._client.report(base_url, [event for event, _ in pairs])
            except GatewayError as error:
                for _, ticket in pairs:
                    ticket.settle(error)
                continue
            for (event, ticket), result in zip(pairs, results, strict=True):
                if not is_settled(result):
                    problem = (
                        f"the report on {event.id} was answered {result.status}: {result.error or 'no reason given'}"
                    )
                    ticket.settle(GatewayError(problem))
                    continue
                if result.status != 204 and self._on_refused is not None:
                    self._on_refused(result)
                ticket.settle()
