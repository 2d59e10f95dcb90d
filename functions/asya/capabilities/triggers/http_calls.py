"""Declares the calls of the gateway about triggers, backfills and webhooks (`protocol §13`)."""

from asya.api_call import IDEMPOTENCY_KEY, ApiCall, Named
from asya.protocol import names

TRIGGERS = ApiCall(
    method="GET",
    path="/api/v1/triggers",
    handler="asya.gateway.triggers.routes.TriggerRoutes.all",
    function=names.GATEWAY_API,
    summary="List the triggers with their next and last slots; for operators",
    details="See [triggers and backfills](#triggers-and-backfills)",
    rights="operators",
    answers={200: Named("asya.capabilities.triggers.operators.answers.TriggerList")},
)
DECIDE_SLOTS = ApiCall(
    method="POST",
    path="/api/v1/triggers",
    handler="asya.gateway.triggers.wiring.SlotRoutes.decide",
    function=names.GATEWAY_API,
    summary="Decide the slots up to a time, in order, on a local cloud; for operators",
    details="Body: `{until}`. `asya local time` calls it",
    rights="operators",
    body=Named("asya.capabilities.triggers.operators.answers.SlotsRequest"),
    answers={200: Named("asya.capabilities.triggers.operators.answers.DecidedSlots")},
    errors=(400, 409),
)
TRIGGER = ApiCall(
    method="GET",
    path="/api/v1/triggers/{trigger}",
    handler="asya.gateway.triggers.routes.TriggerRoutes.show",
    function=names.GATEWAY_API,
    summary="Read a trigger with the newest tasks that it started; for operators",
    rights="operators",
    answers={200: Named("asya.capabilities.triggers.operators.answers.TriggerView")},
    errors=(404,),
)
PAUSE_TRIGGER = ApiCall(
    method="POST",
    path="/api/v1/triggers/{trigger}/pause",
    handler="asya.gateway.triggers.routes.TriggerRoutes.pause",
    function=names.GATEWAY_API,
    summary="Pause a trigger: it starts nothing by itself; for operators",
    rights="operators",
    answers={200: Named("asya.capabilities.triggers.operators.answers.TriggerView")},
    errors=(404,),
)
RESUME_TRIGGER = ApiCall(
    method="POST",
    path="/api/v1/triggers/{trigger}/resume",
    handler="asya.gateway.triggers.routes.TriggerRoutes.resume",
    function=names.GATEWAY_API,
    summary="Resume a paused trigger: its schedule begins now; for operators",
    rights="operators",
    answers={200: Named("asya.capabilities.triggers.operators.answers.TriggerView")},
    errors=(404,),
)
FIRE_TRIGGER = ApiCall(
    method="POST",
    path="/api/v1/triggers/{trigger}/fire",
    handler="asya.gateway.triggers.routes.TriggerRoutes.fire",
    function=names.GATEWAY_API,
    summary="Start the task of a slot, or one for now; for operators",
    details="Body: `{at?}`. 202: `{id}` of the task",
    rights="operators",
    body=Named("asya.capabilities.triggers.operators.answers.FireRequest"),
    needs_body=False,
    answers={202: Named("asya.capabilities.triggers.operators.answers.Fired")},
    errors=(400, 404, 409),
    headers={"Idempotency-Key": IDEMPOTENCY_KEY},
)
BACKFILLS = ApiCall(
    method="GET",
    path="/api/v1/backfills",
    handler="asya.gateway.triggers.routes.BackfillRoutes.all",
    function=names.GATEWAY_API,
    summary="List the backfills, the newest first; for operators",
    rights="operators",
    answers={200: Named("asya.capabilities.triggers.operators.answers.BackfillList")},
)
BEGIN_BACKFILL = ApiCall(
    method="POST",
    path="/api/v1/backfills",
    handler="asya.gateway.triggers.routes.BackfillRoutes.begin",
    function=names.GATEWAY_API,
    summary="Begin a backfill: start the slots of a schedule between two times; for operators",
    details="Body: `{trigger, from, to, at_once?, stop_after?, again?, hold_paused?, dry_run?}`",
    rights="operators",
    body=Named("asya.capabilities.triggers.operators.answers.BackfillRequest"),
    answers={
        200: Named("asya.capabilities.triggers.operators.answers.BackfillView"),
        201: Named("asya.capabilities.triggers.operators.answers.BackfillView"),
    },
    errors=(400, 404, 409),
    headers={"Idempotency-Key": IDEMPOTENCY_KEY},
)
BACKFILL = ApiCall(
    method="GET",
    path="/api/v1/backfills/{id}",
    handler="asya.gateway.triggers.routes.BackfillRoutes.show",
    function=names.GATEWAY_API,
    summary="Read a backfill with its running tasks and its newest failures; for operators",
    rights="operators",
    answers={200: Named("asya.capabilities.triggers.operators.answers.BackfillView")},
    errors=(404,),
)
RESUME_BACKFILL = ApiCall(
    method="POST",
    path="/api/v1/backfills/{id}/resume",
    handler="asya.gateway.triggers.routes.BackfillRoutes.resume",
    function=names.GATEWAY_API,
    summary="Let a stopped backfill go on; for operators",
    rights="operators",
    answers={200: Named("asya.capabilities.triggers.operators.answers.BackfillView")},
    errors=(404,),
)
CANCEL_BACKFILL = ApiCall(
    method="DELETE",
    path="/api/v1/backfills/{id}",
    handler="asya.gateway.triggers.routes.BackfillRoutes.cancel",
    function=names.GATEWAY_API,
    summary="Cancel a backfill and its running tasks; for operators",
    rights="operators",
    answers={200: Named("asya.capabilities.triggers.operators.answers.BackfillView")},
    errors=(404,),
)
TAKE_WEBHOOK = ApiCall(
    method="POST",
    path="/hooks/{name}",
    handler="asya.gateway.routes.webhooks.WebhookRoutes.take",
    function=names.WEBHOOKS,
    summary="Take the webhook of another system",
    details=(
        "Its sender has signed [the webhook](../how-to/start-by-a-webhook.md). The OpenAPI document leaves it out"
    ),
    rights="public",
    audience="other systems",
    exists=Named("asya.predicates.with_webhooks"),
    # Anybody may call it, and every call costs: this bounds what a stranger can spend.
    rate=(50, 100),
)

CALLS = (
    TRIGGERS,
    DECIDE_SLOTS,
    TRIGGER,
    PAUSE_TRIGGER,
    RESUME_TRIGGER,
    FIRE_TRIGGER,
    BACKFILLS,
    BEGIN_BACKFILL,
    BACKFILL,
    RESUME_BACKFILL,
    CANCEL_BACKFILL,
    TAKE_WEBHOOK,
)
