"""Passes reports on to foreign gateways by HTTP (`protocol §3`, `x-asya-gateway-url`)."""

from collections import defaultdict
from collections.abc import Sequence

from asya.messaging.aws.receipt import Receipt
from asya.protocol.events import Report
from asya.reporting.aws.gateway_client import GatewayClient, GatewayError, is_final

# A foreign gateway that does not answer delays the reports of this mesh by so long.
SECONDS_FOR_A_CALL = 2.0


class ForeignReports:
    """Collects reports for foreign gateways. A message is acknowledged only if its gateway has taken or refused them."""

    def __init__(self, client: GatewayClient) -> None:
        self._client = client
        self._waiting: dict[str, list[tuple[Sequence[Report], Receipt]]] = defaultdict(list)

    def add(self, address: str, reports: Sequence[Report]) -> Receipt:
        """Queue the reports of one message and return their receipt."""
        receipt = Receipt("report")
        self._waiting[address].append((reports, receipt))
        return receipt

    def flush(self) -> None:
        """Pass all queued reports on, one call for each gateway, and resolve their receipts."""
        waiting, self._waiting = self._waiting, defaultdict(list)
        for address, groups in waiting.items():
            problem = self._send(address, [report for reports, _ in groups for report in reports])
            for _, receipt in groups:
                receipt.resolve(problem)

    def _send(self, address: str, reports: Sequence[Report]) -> GatewayError | None:
        try:
            results = self._client.report(address, reports, seconds=SECONDS_FOR_A_CALL)
        except GatewayError as error:
            return error
        open_results = [result for result in results if not is_final(result)]
        if not open_results:
            return None
        first = open_results[0]
        return GatewayError(
            f"{address} answered {first.status} to the report on {first.id}: {first.error or 'no reason'}"
        )
