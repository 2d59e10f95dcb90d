"""Decides which requests the console answers, and which headers protect its answers.

Every user and every page in a browser can reach a port of this machine. So the server answers its own address only, and a call
needs the secret that the page has in its address.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from starlette.datastructures import Headers

SECRET_HEADER = "x-asya-console-secret"

_POLICY = "; ".join((
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
))  # fmt: skip

PROTECTION = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), usb=()",
}
"""The headers of every answer."""


class Refusal(NamedTuple):
    """Why a request is not answered: the status, a code for programs, and a sentence for people."""

    status: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Guard:
    """The rules of one server.

    Attributes:
        port: The port of the server on 127.0.0.1.
        secret: What each call must bring, in the header `x-asya-console-secret`.
    """

    port: int
    secret: str = field(repr=False)

    def refuse_address(self, headers: Headers) -> Refusal | None:
        """Refuse a request to another host name: a page of a stranger may resolve its own name to this machine."""
        if headers.getlist("host") == [self.authority]:
            return None
        return Refusal(421, "wrong_host", f"this server answers http://{self.authority} only")

    def refuse_call(self, method: str, headers: Headers) -> Refusal | None:
        """Refuse a call that the page itself has not made."""
        origins = headers.getlist("origin")
        is_own = origins == [f"http://{self.authority}"] or (not origins and method == "GET")
        if not is_own or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return Refusal(403, "wrong_origin", "only the page of this server may call it")
        given = headers.getlist(SECRET_HEADER)
        if len(given) != 1 or not hmac.compare_digest(given[0].encode(), self.secret.encode()):
            return Refusal(403, "wrong_secret", "the secret is missing or wrong; open the console again with `asya ui`")
        return None

    @property
    def authority(self) -> str:
        """The only value of the header `Host`."""
        return f"127.0.0.1:{self.port}"
