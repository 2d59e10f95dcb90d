"""Timeouts in seconds, retention in days, receives, and batch sizes of the mesh's own functions."""

import math

from asya.messaging import sqs_limits
from asya.protocol import names
from asya.starts.idempotency import STARTERS

MARGIN = 30
FUNCTION_TIMEOUT_LIMIT = 900
QUEUE_RETENTION_DAYS = sqs_limits.QUEUE_RETENTION_DAYS
DLQ_RETENTION_DAYS = 14
# Reports wait as long as SQS keeps messages: an outage of their function or of the tasks table loses none.
REPORTS_RETENTION_DAYS = 14
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
ROLES_TIMEOUT = 60
ROLES_ANSWER = 2 * ROLES_TIMEOUT

# How long SQS reuses a data key of the customer managed key. SQS calls KMS once in this time for each queue and caller: with five
# senders about $0.10 a month for a busy queue. A disabled key stops the queues after this time.
DATA_KEY_REUSE_MINUTES = 15

# The starts of a message before it becomes a dead letter, where the mesh file does not say so. The end actors run no user code,
# and their dead letters would be results.
MAX_RECEIVES = 5
END_MAX_RECEIVES = 50
# A notification that waits for the share of its owner counts as received: 20 receives last for four hours of waiting.
PUSH_MAX_RECEIVES = 20
# The most that SQS allows. A receive that fails may be as short as the nack of the function that takes reports.
REPORTS_MAX_RECEIVES = 1000

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
# Ten messages of 64 KiB have some thousand reports. After a crash of the function they come again when this time has passed.
REPORTS_TIMEOUT = 120
REPORTS_BATCH = 10
# Concurrent batches of each queue. More of them would meet at the same tasks, and would take from the actors.
REPORTS_CONCURRENCY = 20
# A start takes a few calls.
TRIGGERS_TIMEOUT = STARTERS[names.TRIGGERS]
# The functions of push notifications. A client may take ten seconds for a notification.
PUSH_TIMEOUT = 60
PUSH_BATCH = 5
