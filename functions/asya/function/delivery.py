"""Deliveries: the messages that a decision sends."""

from datetime import timedelta
from typing import Literal

import msgspec

from asya.protocol.events import RetryNote

# The longest delay of an SQS message.
MAX_DELAY = timedelta(seconds=900)
# The longest wait before a retry. A later `x-asya-not-before` counts as due now (`protocol §5.2`).
MAX_WAIT = timedelta(hours=24)

# The message attribute with the `SenderId` of a dead letter of reports that the gateway sends again (`protocol §12.redrive`).
FIRST_SENDER = "asya-first-sender"
# The message attribute that says why a message became a dead letter of `x-triggers` (`protocol §16.failures`).
PROBLEM = "asya-problem"

DeliveryKind = Literal["next", "sink", "sump", "retry", "later", "slice-ended", "report"]


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """One message for the queue of `actor`.

    Attributes:
        body: the encoded envelope.
        delay: the delay in whole seconds, 0 to 900.
        kind: the cause of the delivery, for the metric `Sent`.
        group: the tenant for fair queues (`fair_by`); None without one.
        retry: what to report of a retry: the error of the attempt, and when the next one is due; None for other deliveries.
    """

    actor: str
    body: bytes
    kind: DeliveryKind
    delay: int = 0
    group: str | None = None
    retry: RetryNote | None = None


class Diversion(msgspec.Struct, frozen=True):
    """The end of a hop before its handler ran: the deliveries, and the cause (`why`) for metrics and logs."""

    envelope_id: str
    deliveries: tuple[Delivery, ...]
    why: str
