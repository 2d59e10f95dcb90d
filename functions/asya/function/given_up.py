"""The message that a function puts into its dead-letter queue (`protocol §4.starts.end`)."""

from msgspec.structs import replace

from asya.function.hop import Arrival
from asya.protocol import headers, status
from asya.protocol.codec import ParseError, encode
from asya.protocol.times import format_time


def may_be_sent(arrival: Arrival) -> bool:
    """Whether the function may send the message: its role becomes the sender, and so vouches for what the message bears."""
    return arrival.refusal is None


def given_up_body(arrival: Arrival, actor: str) -> bytes:
    """The message as admitted. A task that it starts gets its first status, so that its sender stays its owner."""
    try:
        envelope = arrival.envelope()
    except ParseError:
        return arrival.body
    if envelope.status is not None:
        return arrival.body
    started = replace(envelope, status=status.created(actor, format_time(arrival.sent_at)))
    return encode(started.with_headers({headers.OWNER: arrival.sender or None}))
