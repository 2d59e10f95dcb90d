"""Computes how long a message that stays on its queue is hidden (`protocol §4`)."""

# The visibility timeout of the queue is long enough for a running handler and would delay the retry for minutes.
# The time doubles with each receive, so five receives outlast a short outage.
NACK_SECONDS = 5
MAX_NACK_SECONDS = 80
# Five receives outlast an outage of 45 minutes: all messages of the function would become dead letters together.
BLOCKED_NACK_SECONDS = 300
MAX_BLOCKED_NACK_SECONDS = 900


class BlockedError(RuntimeError):
    """The function can process no message until a service answers again or an operator mends a setting."""


def nack_seconds(receive_count: int, error: Exception) -> int:
    """Return the visibility timeout of a message, in seconds.

    Args:
        receive_count: how often the message was received, at least 1.
        error: why the message stays on its queue.
    """
    is_blocked = isinstance(error, BlockedError)
    first, longest = (
        (BLOCKED_NACK_SECONDS, MAX_BLOCKED_NACK_SECONDS) if is_blocked else (NACK_SECONDS, MAX_NACK_SECONDS)
    )
    return min(first << min(receive_count - 1, 10), longest)
