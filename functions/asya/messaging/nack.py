"""Computes how long a message that stays on its queue is hidden (`protocol §4`)."""

# The visibility timeout of the queue is long enough for a running handler and would delay the retry for minutes.
# The time doubles with each receive, so five receives outlast a short outage.
NACK_SECONDS = 5
MAX_NACK_SECONDS = 80
# Five receives outlast an outage of 45 minutes: all messages of the function would become dead letters together.
BLOCKED_NACK_SECONDS = 300
MAX_BLOCKED_NACK_SECONDS = 900


# A deployment updates all functions of a mesh within minutes: five receives wait for seven and a half.
OUTDATED_NACK_SECONDS = 30
MAX_OUTDATED_NACK_SECONDS = 240


class OutdatedError(RuntimeError):
    """An envelope or a stored frame of another version of the mesh goes to an actor that this function does not know."""


class BlockedError(RuntimeError):
    """The function can process no message until a service answers again or an operator mends a setting."""


def nack_seconds(receive_count: int, error: Exception) -> int:
    """Return the visibility timeout of a message, in seconds.

    Args:
        receive_count: how often the message was received, at least 1.
        error: why the message stays on its queue.
    """
    match error:
        case BlockedError():
            first, longest = BLOCKED_NACK_SECONDS, MAX_BLOCKED_NACK_SECONDS
        case OutdatedError():
            first, longest = OUTDATED_NACK_SECONDS, MAX_OUTDATED_NACK_SECONDS
        case _:
            first, longest = NACK_SECONDS, MAX_NACK_SECONDS
    return min(first << min(receive_count - 1, 10), longest)
