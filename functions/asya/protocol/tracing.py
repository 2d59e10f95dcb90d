"""W3C trace context: one trace from submission to sink, with a new span for each hop (`protocol §3`)."""

import hashlib
import re

import msgspec
from msgspec import Raw

_text_decoder = msgspec.json.Decoder(str)
_TRACEPARENT = re.compile(r"(00-(?!0{32})[0-9a-f]{32}-)(?!0{16})[0-9a-f]{16}(-[0-9a-f]{2})")


def hop_traceparent(received: Raw | None, envelope_id: str, span: str) -> str:
    """The `traceparent` of this hop: it continues the received trace, or starts one derived from the envelope's id.

    Args:
        received: the JSON text of the received header; None if there is none.
        span: 16 hexadecimal digits, not all zero.
    """
    if received is not None:
        try:
            match = _TRACEPARENT.fullmatch(_text_decoder.decode(received))
        except msgspec.MsgspecError:
            match = None
        if match:
            return span.join(match.groups())
    return f"00-{hashlib.sha256(envelope_id.encode()).hexdigest()[:32]}-{span}-01"
