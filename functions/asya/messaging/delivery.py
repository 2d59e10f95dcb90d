"""What a decision asks to be carried out: messages to send."""

from datetime import timedelta
from typing import Literal

import msgspec

# What SQS delays a message by at most.
MAX_DELAY = timedelta(seconds=900)
# How far ahead `x-asya-not-before` counts; also the longest wait before a retry (`protocol §5.2`).
MAX_WAIT = timedelta(hours=24)

DeliveryKind = Literal["next", "sink", "sump", "retry", "later", "slice-ended"]


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """One message for the queue of `actor`.

    Attributes:
        body: the envelope's bytes.
        delay: whole seconds before it may be received, 0 to 900.
        kind: why it is sent, for the metric `Sent`.
        group: tenant for fair queues (`fair_by`), if any.
    """

    actor: str
    body: bytes
    kind: DeliveryKind
    delay: int = 0
    group: str | None = None


class Diversion(msgspec.Struct, frozen=True):
    """The end of a hop that never reached the handler: what to send, and why (a word for metric and log)."""

    envelope_id: str
    deliveries: tuple[Delivery, ...]
    why: str
