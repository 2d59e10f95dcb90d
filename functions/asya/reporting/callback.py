"""Selects the base URL for the reports of an envelope (`protocol §3`, `x-asya-gateway-url`)."""

from urllib.parse import urlsplit

from asya.protocol import headers
from asya.protocol.envelope import Envelope


def callback_url(envelope: Envelope, *, configured: str | None, allowed_hosts: frozenset[str]) -> str | None:
    """The base URL for reports of this envelope; None without a gateway.

    The envelope's header counts only if its scheme is http or https and its host is allowed. Reports are signed, so a
    sender must not direct them to a host of its choice.
    """
    value = envelope.header(headers.GATEWAY_URL)
    if not isinstance(value, str):
        return configured
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.netloc in allowed_hosts
    except ValueError:
        return configured
    # Rebuilt from the checked parts, because other parsers may read the header's text differently.
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}" if usable else configured
