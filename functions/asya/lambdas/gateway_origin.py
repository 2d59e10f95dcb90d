"""Where a task comes from that a request starts (`protocol §3`, trace and gateway headers)."""

from collections.abc import Callable
from dataclasses import dataclass

from asya.lambdas.gateway_http import Request
from asya.routing.submission import Origin


@dataclass(frozen=True, slots=True)
class Origins:
    """Makes the origins of one gateway.

    Attributes:
        gateway_url: what envelopes are told to report to: the API whose calls are signed, also for what comes through the one
            that takes tokens; None = where the request came in.
        new_span: makes 16 hexadecimal digits.
    """

    gateway_url: str | None
    new_span: Callable[[], str]

    def of(self, request: Request) -> Origin:
        """That of what a request starts."""
        return Origin(
            gateway_url=self.gateway_url or request.base_url,
            span=self.new_span(),
            traceparent=request.headers.get("traceparent"),
            tracestate=request.headers.get("tracestate"),
        )
