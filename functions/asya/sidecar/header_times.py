"""Reads the times in headers, which senders of messages write (`protocol §3.times`)."""

from datetime import datetime

from asya.protocol.envelope import Envelope
from asya.protocol.times import parse_time


def time_in(envelope: Envelope, header: str) -> datetime | None:
    """The time in a header; None if the header is missing or holds no time."""
    value = envelope.header(header)
    try:
        return parse_time(value) if isinstance(value, str) else None
    except ValueError:
        return None


def past_time_in(envelope: Envelope, header: str, now: datetime) -> datetime | None:
    """The time since which something lasts, at most now; None as for `time_in`. A time ahead would lift the limit from it."""
    moment = time_in(envelope, header)
    return None if moment is None else min(moment, now)
