"""W3C trace context: one trace from submission to sink, with a new span for each hop (`protocol §3`)."""

import hashlib
import re

import msgspec
from msgspec import Raw

_text_decoder = msgspec.json.Decoder(str)
_TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED = 1


class TraceContext(msgspec.Struct, frozen=True):
    """The content of a `traceparent` header.

    Attributes:
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
        flags: 2 hexadecimal digits.
    """

    trace_id: str
    span_id: str
    flags: str

    @property
    def is_sampled(self) -> bool:
        """Whether the trace is to be recorded, by the decision of the function or caller that started it."""
        return bool(int(self.flags, 16) & _SAMPLED)

    def child(self, span: str) -> "TraceContext":
        """The context of a span of the same trace."""
        return TraceContext(self.trace_id, span, self.flags)

    def __str__(self) -> str:
        """The text of the header."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def trace_context(received: Raw | None) -> TraceContext | None:
    """The trace context of a header; None if the header is missing or malformed.

    Args:
        received: the JSON text of the header; None if there is none.
    """
    if received is None:
        return None
    try:
        match = _TRACEPARENT.fullmatch(_text_decoder.decode(received))
    except msgspec.MsgspecError:
        return None
    return TraceContext(*match.groups()) if match else None


def hop_header(received: TraceContext | None, envelope_id: str, span: str) -> Raw:
    """The JSON text of the header of this hop. The arguments are those of `hop_context`, which takes three times as long."""
    begun = received or hop_context(None, envelope_id, span)
    return Raw(f'"00-{begun.trace_id}-{span}-{begun.flags}"'.encode("ascii"))


def hop_context(received: TraceContext | None, envelope_id: str, span: str) -> TraceContext:
    """The trace context of this hop: it continues the received trace, or starts one derived from the envelope's id.

    Args:
        received: the context in the received envelope; None if it has none.
        envelope_id: the id of the envelope.
        span: the id of the hop's span, 16 hexadecimal digits, not all zero.
    """
    if received is not None:
        return received.child(span)
    return TraceContext(hashlib.sha256(envelope_id.encode()).hexdigest()[:32], span, "01")
