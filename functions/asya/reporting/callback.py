"""Where the reports on an envelope go (`protocol §3`, `x-asya-gateway-url`)."""

from urllib.parse import urlsplit

from asya.protocol import headers
from asya.protocol.envelope import Envelope


def callback_url(envelope: Envelope, *, configured: str | None, allowed_hosts: frozenset[str]) -> str | None:
    """The base URL for reports on this envelope; None if there is no gateway.

    The envelope's own header counts only if it is http or https and its host is allowed: reports are signed, and nobody may
    point our signatures at a host of their choice.
    """
    value = envelope.header(headers.GATEWAY_URL)
    if not isinstance(value, str):
        return configured
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.netloc in allowed_hosts
    except ValueError:
        return configured
    # Put together again from what was checked: other parsers may read the header's own text otherwise.
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}" if usable else configured
