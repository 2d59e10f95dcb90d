"""Reduces envelopes that are too large even without their payload (`protocol §4`)."""

from collections.abc import Iterator

from msgspec.structs import replace

from asya.protocol import headers, names, status
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.route import Route

_LONGEST_MANAGED_HEADER = 4 * 1024  # bytes


def reduced_for_sump(envelope: Envelope, problem: str) -> Iterator[Envelope]:
    """The reduced envelopes to try for x-sump: without unmanaged headers, then also without the route.

    Args:
        problem: the size of the envelope and the limit, for the error.
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
    """The failed status; it keeps `updated_at`, which the hop stamped just before."""
    before = envelope.status or status.Status()
    error = ErrorInfo(type="EnvelopeTooLarge", message=message)
    return replace(before, phase="failed", reason="RuntimeError", error=error)
