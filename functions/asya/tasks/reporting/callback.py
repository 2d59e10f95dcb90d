"""Selects the base URL for the reports of an envelope (`protocol §3`, `x-asya-gateway-url`)."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from asya.protocol import headers
from asya.protocol.envelope import Envelope


def callback_url(envelope: Envelope, *, configured: str | None, allowed_hosts: frozenset[str]) -> str | None:
    """The base URL for reports of this envelope; None without a gateway.

    The envelope's header counts only if its scheme is http or https and its host is allowed. Reports are signed, so a
    sender must not direct them to a host of its choice. Any address on the gateway's own host means the configured URL.
    """
    value = envelope.header(headers.GATEWAY_URL)
    return (allowed_address(value, allowed_hosts, configured) if isinstance(value, str) else None) or configured


def allowed_address(value: str, allowed_hosts: frozenset[str], own: str | None) -> str | None:
    """The base URL in a text; None if its scheme is not http or https, or its host is not allowed.

    Args:
        own: the URL of the mesh's own gateway. It stands for each address on its host: another scheme or path there would
            count as a foreign gateway that never takes a report.
    """
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.netloc in allowed_hosts
    except ValueError:
        return None
    if usable and own is not None and parts.netloc == urlsplit(own).netloc:
        return own
    # Rebuilt from the checked parts, because other parsers may read the text differently.
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}" if usable else None


def allowed_hosts(configured_url: str | None, extra: Iterable[str]) -> frozenset[str]:
    """The hosts that may receive reports: the deployment's own, and those in the mesh file."""
    own = urlsplit(configured_url).netloc if configured_url else ""
    return frozenset({own, *extra} - {""})
