"""Declares the calls of the gateway about failures and dead letters (`protocol §13`)."""

from asya.api_call import CURSOR, FILTERS, IDEMPOTENCY_KEY, ApiCall, Named
from asya.protocol import names

REDRIVE = ApiCall(
    method="POST",
    path="/api/v1/mesh/redrive",
    handler="asya.gateway.routes.redrives.RedriveRoutes.redrive",
    function=names.GATEWAY_API,
    summary="Send a dead letter again, in the next generation of its task; for operators. The body is the message",
    details="`asya dlq redrive` calls it",
    rights="operators",
    body=bytes,
    answers={200: Named("asya.capabilities.dead_letters.redrive.Redriven")},
    errors=(400, 404, 409, 413),
    query={
        "actor": {"type": "string", "required": True, "description": "the actor behind the dead-letter queue"},
        "message_id": {"type": "string", "required": True, "description": "the SQS message id"},
        "sender": {"type": "string", "description": "the SenderId of the message"},
        "sent_at": {"type": "string", "format": "date-time", "description": "the SentTimestamp of the message"},
        "force": {
            "type": "boolean",
            "description": "also if the task is settled, has ended otherwise, is paused or went on",
        },
    },
)
REPLAY = ApiCall(
    method="POST",
    path="/api/v1/mesh/{id}/replay",
    handler="asya.gateway.routes.replays.ReplayRoutes.replay",
    function=names.GATEWAY_API,
    summary="Start a new task from a stored envelope",
    details=(
        "Body: `{hop? | checkpoint? | failed_only?, force?}`. A repeated `Idempotency-Key` starts one task. "
        "409 if the task is [settled](#resolutions), unless `force`"
    ),
    in_console=True,
    body=Named("asya.capabilities.dead_letters.replay.ReplayRequest"),
    needs_body=False,
    answers={201: Named("asya.capabilities.dead_letters.replay.Replayed")},
    errors=(400, 404, 409, 413),
    headers={"Idempotency-Key": IDEMPOTENCY_KEY},
)
DISMISS = ApiCall(
    method="POST",
    path="/api/v1/mesh/{id}/dismiss",
    handler="asya.gateway.routes.dismissals.DismissalRoutes.dismiss",
    function=names.GATEWAY_API,
    summary="Dismiss the failure of a task, with a reason, or undo that",
    details="Body: `{reason}` or `{undo: true}`",
    in_console=True,
    body=Named("asya.capabilities.dead_letters.settlements.DismissRequest"),
    answers={200: Named("asya.capabilities.dead_letters.settlements.Dismissed")},
    errors=(400, 404, 409),
)
FAILURES = ApiCall(
    method="GET",
    path="/api/v1/operations/failures",
    handler="asya.gateway.operations.failures.FailureRoutes.groups",
    function=names.OPERATIONS,
    summary="Group the caller's tasks that failed, or that run again, by actor and error; operators group all tasks",
    details="See [failures](#failures)",
    in_console=True,
    answers={200: Named("asya.tasks.failures.FailureList")},
    errors=(400,),
    query=FILTERS | {"cursor": CURSOR},
)

CALLS = (
    REDRIVE,
    REPLAY,
    DISMISS,
    FAILURES,
)
