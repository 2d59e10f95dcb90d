"""Builds the origin of a submission from its request (`protocol §3`, trace and gateway headers)."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from asya.gateway.access import AccessRules
from asya.gateway.http.router import Request
from asya.tasks.starts.submission import Origin


@dataclass(frozen=True, slots=True)
class Origins:
    """Builds the origins of one gateway.

    Attributes:
        gateway_url: the base URL for reports: the API for signed calls, also if the request came through the API for tokens.
            None: the API that received the request.
        new_span: creates a span id of 16 hexadecimal digits.
        access: says who a caller is.
    """

    gateway_url: str | None
    new_span: Callable[[], str]
    access: AccessRules

    def takes_tokens(self, request: Request) -> bool:
        """Whether a request came through the API for tokens; the calls of the other API are signed."""
        if self.gateway_url is None:
            return False
        # `https://{id of the API}.execute-api…`, even if the API also has a custom domain.
        return (urlsplit(self.gateway_url).hostname or "").partition(".")[0] != request.api_id

    def of(self, request: Request) -> Origin:
        """The origin of a task that a request starts."""
        return Origin(
            gateway_url=self.gateway_url or request.base_url,
            span=self.new_span(),
            traceparent=request.headers.get("traceparent"),
            tracestate=request.headers.get("tracestate"),
            tenant=self.access.tenant(request.identity),
        )
