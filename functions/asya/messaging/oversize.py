"""Envelopes that are too large to be sent even without their payload (`protocol §4`)."""

from collections.abc import Iterator

from msgspec.structs import replace

from asya.protocol import headers, names, status
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.route import Route

_LONGEST_MANAGED_HEADER = 4 * 1024  # bytes


def reduced_for_sump(envelope: Envelope, problem: str) -> Iterator[Envelope]:
    """What can be told of it to x-sump, from most to least: without its own headers, then without its route too.

    Args:
        problem: how large it is, and what may be sent.
    """
    managed = {name: raw for name, raw in envelope.headers.items() if headers.is_managed(name)}
    yield replace(envelope, headers=managed, status=_failed(envelope, f"{problem}; its headers were dropped"))
    short = {name: raw for name, raw in managed.items() if len(bytes(raw)) <= _LONGEST_MANAGED_HEADER}
    yield replace(
        envelope,
        headers=short,
        route=Route((), names.SUMP, ()),
        status=_failed(envelope, f"{problem}; its headers and its route were dropped"),
        status_extra={},
        extra={},
    )


def _failed(envelope: Envelope, message: str) -> status.Status:
    """Stamped a moment ago by the hop that wanted to send it; that time stays."""
    was = envelope.status or status.Status()
    error = ErrorInfo(type="EnvelopeTooLarge", message=message)
    return replace(was, phase="failed", reason="RuntimeError", error=error)
