"""What follows from a mesh file's numbers; nothing here is set a second time anywhere. Seconds and days."""

import math

MARGIN = 30
FUNCTION_TIMEOUT_LIMIT = 900
QUEUE_RETENTION_DAYS = 4
DLQ_RETENTION_DAYS = 14


def function_timeout(call_timeout: float, batch_size: int) -> int:
    """The function's timeout: every call of a batch may use up its own, and there is a margin for the rest."""
    return math.ceil(call_timeout * batch_size) + MARGIN


def visibility_timeout(function_seconds: int) -> int:
    """A queue's visibility timeout: Lambda insists on at least the function's; more would only delay recovery."""
    return function_seconds + MARGIN


# Functions that run no user code: their calls take milliseconds, or as long as one step of theirs may.
CREW_TIMEOUT = 120
ENQUEUE_TIMEOUT = 120
# Many messages at a time: one call registers them and one makes fifty pending. A second more is nothing to a job run.
ENQUEUE_BATCH = 100
ENQUEUE_WINDOW = 1
FAN_IN_TIMEOUT = 120
PAUSE_TIMEOUT = 120
DISPATCH_TIMEOUT = 120
COMPLETION_TIMEOUT = 300
RECONCILE_TIMEOUT = 120
DLQ_TIMEOUT = 120
# Of the functions that tell other agents of their tasks. A client has ten seconds to take a notification.
PUSH_TIMEOUT = 60
PUSH_BATCH = 5
