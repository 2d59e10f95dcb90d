"""Passes reports on to foreign gateways by HTTP (`protocol §3`, `x-asya-gateway-url`)."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from botocore.exceptions import BotoCoreError, ClientError

from asya.function.aws.receipt import Receipt
from asya.protocol.events import EventResult, Report, is_end
from asya.tasks.reporting.aws.gateway_client import GatewayClient, GatewayError, is_final

# A foreign gateway that does not answer delays the reports of this mesh by so long.
SECONDS_FOR_A_CALL = 2.0

Refusal = tuple[Report, str]
"""An end that a foreign gateway refused for good, and why."""


@dataclass(frozen=True, slots=True)
class _Group:
    """The reports of one message."""

    reports: Sequence[Report]
    keep: Callable[[Sequence[Refusal]], None]
    receipt: Receipt


class ForeignReports:
    """Collects reports for foreign gateways. A message is acknowledged only if its gateway has taken or refused them."""

    def __init__(self, client: GatewayClient) -> None:
        self._client = client
        self._waiting: dict[str, list[_Group]] = defaultdict(list)

    def add(self, address: str, reports: Sequence[Report], keep: Callable[[Sequence[Refusal]], None]) -> Receipt:
        """Queue the reports of one message and return their receipt.

        Args:
            keep: stores the ends that the gateway refuses for good. No other message holds them; refused progress is
                dropped. Raises ClientError or BotoCoreError, and then the message stays on its queue.
        """
        receipt = Receipt("report")
        self._waiting[address].append(_Group(reports, keep, receipt))
        return receipt

    def flush(self) -> None:
        """Pass all queued reports on, one call for each gateway, and resolve their receipts."""
        waiting, self._waiting = self._waiting, defaultdict(list)
        for address, groups in waiting.items():
            self._send(address, groups)

    def _send(self, address: str, groups: Sequence[_Group]) -> None:
        reports = [report for group in groups for report in group.reports]
        try:
            results = iter(self._client.report(address, reports, seconds=SECONDS_FOR_A_CALL))
        except GatewayError as error:
            for group in groups:
                group.receipt.resolve(error)
            return
        for group in groups:
            own_results = [result for _, result in zip(group.reports, results, strict=False)]
            group.receipt.resolve(_problem(address, group, own_results))


def _problem(address: str, group: _Group, results: Sequence[EventResult]) -> Exception | None:
    """Why a message stays on its queue; None if nothing of it is left to do."""
    open_result = next((result for result in results if not is_final(result)), None)
    if open_result is not None:
        reason = open_result.error or "no reason"
        return GatewayError(f"{address} answered {open_result.status} to the report on {open_result.id}: {reason}")
    refusals = [
        (report, f"{address} answered {result.status}: {result.error or 'no reason'}")
        for report, result in zip(group.reports, results, strict=True)
        if is_end(report) and result.status != HTTPStatus.NO_CONTENT
    ]
    try:
        if refusals:
            group.keep(refusals)
    except (ClientError, BotoCoreError) as error:
        return error
    return None
