"""Computes how long a message that stays on its queue is hidden (`protocol §4`)."""

import math

# The visibility timeout of the queue is long enough for a running handler and would delay the next run for minutes.
NACK_SECONDS = 5
MAX_NACK_SECONDS = 80
# While a service is off, a queue slows down, and no message comes back for nothing more often than every quarter of an hour.
MAX_OUTAGE_NACK_SECONDS = 900
BLOCKED_NACK_SECONDS = 300
MAX_BLOCKED_NACK_SECONDS = 900
# A deployment updates all functions of a mesh within minutes.
OUTDATED_NACK_SECONDS = 30
MAX_OUTDATED_NACK_SECONDS = 240


class ServiceError(RuntimeError):
    """A service of AWS, or another part of the mesh, did not do what a message needs.

    Attributes:
        is_outage: whether the message is not the cause.
    """

    is_outage = True


class OutdatedError(ServiceError):
    """An envelope or a stored frame of another version of the mesh goes to an actor that this function does not know."""


class BlockedError(ServiceError):
    """The function can process no message until a service answers again or an operator mends a setting."""


def nack_seconds(receive_count: int, error: Exception, *, is_outage: bool = False, chance: float = 1.0) -> int:
    """Return the visibility timeout of a message, in seconds.

    Args:
        receive_count: how often the message was received, at least 1.
        error: why the message stays on its queue.
        is_outage: whether a service of the mesh is the cause. Messages of an outage return with jitter, not all at once.
        chance: a random number in [0, 1), for the jitter.
    """
    share = 1.0
    match error:
        case BlockedError():
            first, longest = BLOCKED_NACK_SECONDS, MAX_BLOCKED_NACK_SECONDS
        case OutdatedError():
            first, longest = OUTDATED_NACK_SECONDS, MAX_OUTDATED_NACK_SECONDS
        case _ if is_outage:
            first, longest, share = NACK_SECONDS, MAX_OUTAGE_NACK_SECONDS, (1 + chance) / 2
        case _:
            first, longest = NACK_SECONDS, MAX_NACK_SECONDS
    return math.ceil(min(first << min(receive_count - 1, 10), longest) * share)
