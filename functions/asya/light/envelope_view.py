"""The view of an envelope that its handler reads and changes (`protocol §7`)."""

from typing import Any

import msgspec

from asya.protocol.envelope import Envelope
from asya.protocol.headers import KEY
from asya.protocol.strict_json import decode_value
from asya.runtime.abi import EnvelopeView


def envelope_view(envelope: Envelope) -> EnvelopeView:
    """A new view of an envelope; the view shares no values with other views (`protocol §7`)."""
    status: dict[str, Any] = msgspec.to_builtins(envelope.status) if envelope.status is not None else {}
    return EnvelopeView(
        id=envelope.id,
        parent_id=envelope.parent_id or "",
        prev=envelope.route.prev,
        curr=envelope.route.curr,
        next=list(envelope.route.next),
        headers={name: decode_value(raw) for name, raw in envelope.headers.items() if name != KEY},
        status=status | {name: decode_value(raw) for name, raw in envelope.status_extra.items()},
    )
