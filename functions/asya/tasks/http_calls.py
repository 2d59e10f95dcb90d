"""Declares the calls of the gateway about tasks, their reports and streams, and tools (`protocol §13`)."""

from asya.api_call import (
    CURSOR,
    EVENT_STREAM,
    FILTERS,
    FROM_HEADER,
    FROM_QUERY,
    ID,
    IDEMPOTENCY_KEY,
    LIMIT,
    RESOLVED,
    STATUS,
    ApiCall,
    Named,
    Schema,
)
from asya.protocol import names

_EVENTS: Schema = {
    "type": "array",
    "maxItems": Named("asya.tasks.received_reports.BATCH_LIMIT"),
    "items": {"anyOf": [Named("asya.protocol.events.TaskEvent"), Named("asya.protocol.events.PartialEvent")]},
}

START_TASK = ApiCall(
    method="POST",
    path="/api/v1/mesh",
    handler="asya.gateway.routes.tasks.TaskRoutes.start",
    function=names.GATEWAY_API,
    summary="Start a task at an actor",
    details=(
        "Body: `{payload?, headers?, timeout?}`; `actor` is a parameter. A repeated `Idempotency-Key` starts "
        "one task. With the header `x-asya-mesh-status: off`, which is for operators, the task has no record "
        "(`tracked: false`). [`gateway.starts`](mesh-file.md#gateway) limits the actors"
    ),
    takes_slash=True,
    body=Named("asya.gateway.lambdas.openapi.StartRequest"),
    needs_body=False,
    answers={201: Named("asya.gateway.lambdas.openapi.Started")},
    errors=(400, 404, 409, 413),
    query={"actor": {"type": "string", "required": True}},
    headers={"Idempotency-Key": IDEMPOTENCY_KEY},
)
TASKS = ApiCall(
    method="GET",
    path="/api/v1/mesh",
    handler="asya.gateway.routes.tasks.ListRoutes.all",
    function=names.GATEWAY_API,
    summary="List the caller's tasks, newest first; operators list all tasks",
    details="[Filters](#lists) are parameters, such as `parent`",
    in_console=True,
    takes_slash=True,
    answers={200: Named("asya.tasks.listing.TaskList")},
    errors=(400,),
    query={"status": STATUS, "parent": ID} | FILTERS | {"limit": LIMIT, "cursor": CURSOR},
)
TASK = ApiCall(
    method="GET",
    path="/api/v1/mesh/{id}",
    handler="asya.gateway.routes.tasks.TaskRoutes.task",
    function=names.GATEWAY_API,
    summary="Read a task",
    in_console=True,
    answers={200: Named("asya.tasks.view.TaskView")},
    errors=(404,),
)
CHILDREN = ApiCall(
    method="GET",
    path="/api/v1/mesh/{id}/children",
    handler="asya.gateway.routes.tasks.ListRoutes.children",
    function=names.GATEWAY_API,
    summary="List the children of a task, newest first",
    details="They are the tasks that it fanned out into",
    in_console=True,
    answers={200: Named("asya.tasks.listing.TaskList")},
    errors=(400, 404),
    query={"status": STATUS, "resolved": RESOLVED, "limit": LIMIT, "cursor": CURSOR},
)
TIMELINE = ApiCall(
    method="GET",
    path="/api/v1/mesh/{id}/timeline",
    handler="asya.gateway.routes.tasks.ListRoutes.timeline",
    function=names.GATEWAY_API,
    summary="List a task's hops with their times, first to last",
    details="Every attempt at every hop is there, those of earlier generations included",
    in_console=True,
    answers={200: Named("asya.tasks.listing.Timeline")},
    errors=(400, 404),
    query={
        "limit": LIMIT
        | {
            "maximum": Named("asya.gateway.routes.tasks.HOPS_LIMIT"),
            "default": Named("asya.gateway.routes.tasks.HOPS_LIMIT"),
        },
        "cursor": CURSOR,
    },
)
KEPT_HOPS = ApiCall(
    method="GET",
    path="/api/v1/mesh/{id}/payloads",
    handler="asya.gateway.routes.tasks.PayloadRoutes.list",
    function=names.GATEWAY_API,
    summary="List a task's hops with kept payloads, first to last",
    details="See [payloads](#payloads)",
    in_console=True,
    answers={200: Named("asya.capabilities.operations.payloads.KeptHops")},
    errors=(404,),
)
KEPT_HOP = ApiCall(
    method="GET",
    path="/api/v1/mesh/{id}/payloads/{hop}",
    handler="asya.gateway.routes.tasks.PayloadRoutes.hop",
    function=names.GATEWAY_API,
    summary="Read the kept payloads before and after a hop, each cut at 256 KiB",
    in_console=True,
    answers={200: Named("asya.capabilities.operations.payloads.HopPayloads")},
    errors=(400, 404),
)
CANCEL = ApiCall(
    method="DELETE",
    path="/api/v1/mesh/{id}",
    handler="asya.gateway.routes.cancel.CancelRoutes.delete",
    function=names.GATEWAY_API,
    summary=(
        "Cancel a task and its descendants; an ended task stays unchanged. "
        "202 says how a task has ended whose record follows"
    ),
    details=(
        "Its job runs are canceled too. 204: it is canceled. 202: it has ended, in this `status`. 503: it is "
        "not decided; repeat the call"
    ),
    in_console=True,
    answers={202: Named("asya.gateway.routes.cancel.Ended"), 204: None},
    errors=(404,),
)
CALL_TOOL = ApiCall(
    method="POST",
    path="/tools/call",
    handler="asya.gateway.routes.tools.ToolRoutes.call",
    function=names.GATEWAY_API,
    summary="Call a tool and wait for the result",
    details=(
        "Body: `{name, arguments}`. 200 with the end; 202 after 25 seconds, after those of `Prefer: wait=N`, "
        "or at a pause. Both have `id`, `status_url` and `stream_url`"
    ),
    group="tools",
    body=Named("asya.gateway.lambdas.openapi.ToolRequest"),
    answers={
        200: Named("asya.gateway.routes.tools.ToolAnswer"),
        202: Named("asya.gateway.routes.tools.ToolAnswer"),
    },
    errors=(400, 404, 409, 413),
    headers={"Idempotency-Key": IDEMPOTENCY_KEY, "Prefer": {"type": "string"}},
    waits=True,
)
SEND_REPORTS = ApiCall(
    method="POST",
    path="/api/v1/mesh/events",
    handler="asya.gateway.routes.reports.ReportRoutes.events",
    function=names.GATEWAY_API,
    summary="Send reports, with a result for each; for operators",
    details="Body: `[…]`. 200: `items` has the status of each",
    rights="operators",
    group=None,
    body=_EVENTS,
    answers={200: Named("asya.protocol.events.EventResults")},
    errors=(400, 413),
)
SEND_REPORT = ApiCall(
    method="POST",
    path="/api/v1/mesh/{id}/events",
    handler="asya.gateway.routes.reports.ReportRoutes.event",
    function=names.GATEWAY_API,
    summary="Send one report; for operators",
    details="Body: `{type: status, status, data}` or `{type: fly, data}`",
    rights="operators",
    group=None,
    body=Named("asya.gateway.lambdas.openapi.SingleEvent"),
    answers={204: None},
    errors=(400, 404, 413),
)
EVENTS = ApiCall(
    method="GET",
    path="/api/v1/mesh/{id}/events",
    handler="asya.gateway.streams.routes.StreamRoutes.signed",
    function=names.GATEWAY_STREAM,
    summary="Stream a task: Server-Sent Events `status`, `partial`, `final`",
    details="See [streams](#streams)",
    in_console=True,
    group="streams",
    answers=EVENT_STREAM,
    errors=(404,),
    query=FROM_QUERY,
    headers=FROM_HEADER,
)
STREAM = ApiCall(
    method="GET",
    path="/api/v1/mesh/{id}/stream",
    handler="asya.gateway.streams.routes.StreamRoutes.with_token",
    function=names.GATEWAY_STREAM,
    summary="Stream a task with a stream token instead of a signature",
    rights="public",
    group="streams",
    answers=EVENT_STREAM,
    errors=(403, 404),
    query={"token": {"type": "string", "required": True}} | FROM_QUERY,
    headers=FROM_HEADER,
)
CREATE_STREAM_TOKEN = ApiCall(
    method="POST",
    path="/api/v1/mesh/{id}/stream-token",
    handler="asya.gateway.streams.routes.StreamRoutes.create_token",
    function=names.GATEWAY_STREAM,
    summary="Create a token for one task's stream, valid for an hour",
    details="201: `{token, expires_at, url}`, for clients that cannot sign, such as a browser's EventSource",
    group="streams",
    answers={201: Named("asya.gateway.streams.routes.StreamToken")},
    errors=(404,),
)

CALLS = (
    START_TASK,
    TASKS,
    TASK,
    CHILDREN,
    TIMELINE,
    KEPT_HOPS,
    KEPT_HOP,
    CANCEL,
    CALL_TOOL,
    SEND_REPORTS,
    SEND_REPORT,
    EVENTS,
    STREAM,
    CREATE_STREAM_TOKEN,
)
