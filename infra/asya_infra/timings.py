"""Timeouts in seconds, retention in days, and batch sizes of the mesh's own functions."""

import math

MARGIN = 30
FUNCTION_TIMEOUT_LIMIT = 900
QUEUE_RETENTION_DAYS = 4
DLQ_RETENTION_DAYS = 14


def function_timeout(call_timeout: float, batch_size: int) -> int:
    """Return the timeout of a function: the timeouts of all calls in a batch, plus a margin."""
    return math.ceil(call_timeout * batch_size) + MARGIN


def visibility_timeout(function_seconds: int) -> int:
    """Return the visibility timeout of a queue. Lambda requires at least the timeout of the function."""
    return function_seconds + MARGIN


# The timeouts of functions without user code.
CREW_TIMEOUT = 120
ENQUEUE_TIMEOUT = 120
# Large batches save calls of DynamoDB. The wait for a batch is short compared with a job run.
ENQUEUE_BATCH = 100
ENQUEUE_WINDOW = 1
FAN_IN_TIMEOUT = 120
PAUSE_TIMEOUT = 120
DISPATCH_TIMEOUT = 120
COMPLETION_TIMEOUT = 300
RECONCILE_TIMEOUT = 120
DLQ_TIMEOUT = 120
# The functions of push notifications. A client may take ten seconds for a notification.
PUSH_TIMEOUT = 60
PUSH_BATCH = 5
