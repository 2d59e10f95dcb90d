"""Where a task comes from that a request starts (`protocol §3`, trace and gateway headers)."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from asya.gateway.http.router import Request
from asya.gateway.submission import Origin


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

    def takes_tokens(self, request: Request) -> bool:
        """Whether a request came through the API for people with a token; calls of the other are signed."""
        if self.gateway_url is None:
            return False
        # `https://{id of the API}.execute-api…`: also where the API has a domain of its own in front of it.
        return (urlsplit(self.gateway_url).hostname or "").partition(".")[0] != request.api_id

    def of(self, request: Request) -> Origin:
        """That of what a request starts."""
        return Origin(
            gateway_url=self.gateway_url or request.base_url,
            span=self.new_span(),
            traceparent=request.headers.get("traceparent"),
            tracestate=request.headers.get("tracestate"),
        )
