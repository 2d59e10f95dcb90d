"""Reports that must arrive: one call for a whole batch, and for each report whether it was taken (`protocol §5`, reports)."""

from collections import defaultdict

from asya.aws.gateway_client import GatewayClient, GatewayError, is_settled
from asya.aws.ticket import Ticket
from asya.protocol.events import TaskEvent


class SureReports:
    """Gathers reports; a message may be acked only when the tickets of its reports are settled without an error."""

    def __init__(self, client: GatewayClient) -> None:
        self._client = client
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
            for (_, ticket), result in zip(pairs, results, strict=True):
                problem = f"the report on {result.id} was answered {result.status}: {result.error or 'no reason given'}"
                ticket.settle(None if is_settled(result) else GatewayError(problem))
