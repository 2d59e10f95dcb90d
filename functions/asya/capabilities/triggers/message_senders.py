"""Which function of the mesh may send which messages to `x-triggers` (`protocol §16.senders.forms`).

A message says what it is by its members. Each member that gives a message its form is a right of the sender: a message with the
members of two forms needs both, so it does not matter which of the forms a reader tries first.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from asya.capabilities.triggers.messages import UnusableMessageError
from asya.protocol import names

_SERVICES = frozenset({"Records", "Event", "event"})
_SLOTS = frozenset({"slot"})
_WEBHOOKS = frozenset({"webhook"})
_FIRES = frozenset({"fired"})
_BACKFILLS = frozenset({"backfill"})
_LANES = frozenset({"lane"})
_ENDS = frozenset({"ended"})
_FORMS = _SERVICES | _SLOTS | _WEBHOOKS | _FIRES | _BACKFILLS | _LANES | _ENDS

SENDERS: Mapping[str, frozenset[str]] = {
    names.TASK_SWEEP: _SLOTS | _BACKFILLS | _LANES | _ENDS,
    names.WEBHOOKS: _WEBHOOKS,
    names.REPORTS: _ENDS,
    names.TRIGGERS: _LANES,
    # A redrive of dead letters is a call of the gateway.
    names.GATEWAY_API: _FORMS,
}
"""The functions that may send to `x-triggers`, with the members of a message that each may send."""

_decoder = msgspec.json.Decoder(dict[str, Raw])


def check_sender(function: str, body: bytes) -> None:
    """Check that a function of the mesh may send a message; one without a known form is left to the readers.

    Args:
        function: the function whose role has sent the message.
        body: the message.

    Raises:
        UnusableMessageError: another function sends such messages.
    """
    try:
        forms = _FORMS & _decoder.decode(body).keys()
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return
    if refused := forms - SENDERS.get(function, frozenset()):
        raise UnusableMessageError(f"{function} may send no message with {', '.join(sorted(refused))}")
