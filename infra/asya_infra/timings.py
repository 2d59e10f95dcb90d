"""Timeouts in seconds, retention in days, receives, and times of queues."""

import math

from asya.function import sqs

MARGIN = 30
FUNCTION_TIMEOUT_LIMIT = 900
QUEUE_RETENTION_DAYS = sqs.QUEUE_RETENTION_DAYS
DLQ_RETENTION_DAYS = 14
# With any batching window, one poll of Lambda may already wait this long for messages.
SHORTEST_WAIT = 20


def function_timeout(call_timeout: float, batch_size: int) -> int:
    """Return the timeout of a function: the timeouts of all calls in a batch, plus a margin."""
    return math.ceil(call_timeout * batch_size) + MARGIN


def visibility_timeout(function_seconds: int, window: int = 0) -> int:
    """Return the visibility timeout of a queue.

    Messages are in flight from the moment that Lambda receives them, so the wait for a fuller batch counts too.

    Args:
        function_seconds: the timeout of the function.
        window: the window of the event source mapping in seconds.
    """
    return function_seconds + (max(window, SHORTEST_WAIT) if window else 0) + MARGIN


# CloudFormation waits for the list of a stack's roles for this long, which is a few calls of DynamoDB.
ROLES_ANSWER = 120

# How long SQS reuses a data key of the customer managed key. SQS calls KMS once in this time for each queue and caller: with five
# senders about $0.10 a month for a busy queue. A disabled key stops the queues after this time.
DATA_KEY_REUSE_MINUTES = 15

# The starts of a message before it becomes a dead letter, where the mesh file does not say so. The end actors run no user code,
# and their dead letters would be results.
MAX_RECEIVES = 5
END_MAX_RECEIVES = 50
