"""Describes each call of the gateway: its parameters, its content and its answers. `openapi` builds the document from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from asya.dead_letters.dismissals import Dismissed, DismissRequest
from asya.dead_letters.redrive import Redriven
from asya.dead_letters.replay import Replayed, ReplayRequest
from asya.fan_in.set_view import TaskSet
from asya.gateway.http.router import KEY_LIMIT
from asya.gateway.json_rpc import Failure, Success
from asya.gateway.lambdas.api_types import (
    CallbackAnswer,
    Health,
    Message,
    ResumeRequest,
    SingleEvent,
    Started,
    StartRequest,
    ToolRequest,
)
from asya.gateway.operations.runs import MOST_MEMBERS, RunDetails, RunPage
from asya.gateway.routes.cancel import Ended
from asya.gateway.routes.lists import HOPS_LIMIT
from asya.gateway.routes.resume import Resumed
from asya.gateway.routes.tools import ToolAnswer
from asya.gateway.streams import sse
from asya.gateway.streams.routes import StreamToken
from asya.legacy.tasks import LegacyEnvelope, LegacyFinal, LegacyJob, LegacyProgress
from asya.operations.dead_letters import DEFAULT_LIMIT as LETTERS
from asya.operations.dead_letters import LARGEST_LIMIT as MOST_LETTERS
from asya.operations.dead_letters import LetterPage
from asya.operations.log_lines import DEFAULT_LIMIT as DEFAULT_LINES
from asya.operations.log_lines import LARGEST_LIMIT as LARGEST_LINES
from asya.operations.log_lines import RUN_SOURCES, LogPage
from asya.operations.mesh_numbers import ActorDetails, MeshNumbers
from asya.operations.payloads import HopPayloads, KeptHops
from asya.protocol.events import EventResults, PartialEvent, TaskEvent
from asya.protocol.ids import ID_LIMIT
from asya.protocol.task import TaskStatus
from asya.tasks.event_batch import BATCH_LIMIT
from asya.tasks.failures import FailureList
from asya.tasks.filters import TEXT_LIMIT
from asya.tasks.listing import DEFAULT_LIMIT, LARGEST_LIMIT, TaskList, Timeline
from asya.tasks.view import TaskView
from asya.triggers.operators.answers import (
    BackfillList,
    BackfillRequest,
    BackfillView,
    DecidedSlots,
    Fired,
    FireRequest,
    SlotsRequest,
    TriggerList,
    TriggerView,
)

Schema = dict[str, Any]


@dataclass(frozen=True)
class CallDescription:
    """The description of a call.

    Attributes:
        responses: the content by status; None for no body, a media type for text of that type.
        body: the content of the request; `bytes` for content of any form.
        errors: the statuses of errors besides 403, 429 and 5xx.
        query, headers: the parameters by name.
        streamed: the statuses whose response may also be Server-Sent Events.
    """

    summary: str
    responses: Mapping[int, Any]
    body: Any = None
    is_body_required: bool = True
    errors: tuple[int, ...] = ()
    query: Mapping[str, Schema] = field(default_factory=dict)
    headers: Mapping[str, Schema] = field(default_factory=dict)
    streamed: tuple[int, ...] = ()


_LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": DEFAULT_LIMIT}
_CURSOR: Schema = {"type": "string", "description": "next_cursor of the previous page"}
_STATUS: Schema = {"type": "string", "enum": list(get_args(TaskStatus))}
PARENT: Schema = {"type": "string", "minLength": 1, "maxLength": ID_LIMIT}
_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": TEXT_LIMIT}
_TIME: Schema = {"type": "string", "format": "date-time"}
_RESOLVED: Schema = {
    "type": "boolean",
    "description": "of failed tasks also those that are settled: replayed, dismissed or overtaken",
}
_FILTERS: dict[str, Schema] = {
    "tool": _TEXT | {"description": "the tool that started the task or its root"},
    "actor": _TEXT | {"description": "the actor that the task is at, or ended at"},
    "owner": _TEXT | {"description": "the principal that owns the task; for operators"},
    "error": _TEXT | {"description": "a text in the error, in that of a retry, or in the reason"},
    "since": _TIME | {"description": "the earliest creation"},
    "until": _TIME | {"description": "the time before which the task was created"},
    "roots": {"type": "boolean", "description": "only tasks without a parent"},
    "retrying": {"type": "boolean", "description": "only running tasks that run again after an error"},
    "resolved": _RESOLVED,
}
_KEY: Schema = {"type": "string", "minLength": 1, "maxLength": KEY_LIMIT, "pattern": "^[ -~]+$"}
_LINES: Schema = {"type": "integer", "minimum": 1, "maximum": LARGEST_LINES, "default": DEFAULT_LINES}
_SINCE: Schema = {"type": "string", "format": "date-time", "description": "the earliest time"}
_SOURCE: Schema = {"type": "string", "enum": list(RUN_SOURCES)}
_EVENTS = {"type": "array", "maxItems": BATCH_LIMIT, "items": {"anyOf": [TaskEvent, PartialEvent]}}

# Clients read this either as the schema of the whole text or of each event, so it has no type.
EVENTS_OF_A_STREAM: Schema = {"description": "Server-Sent Events"}
_EVENT_STREAM: Mapping[int, Any] = {200: sse.MEDIA_TYPE, 204: None}
_FROM: Schema = {"type": "string", "description": "id of the last event that the client received"}
_FROM_HEADER, _FROM_QUERY = {"Last-Event-ID": _FROM}, {"last_event_id": _FROM}

CALL_DESCRIPTIONS: dict[str, CallDescription] = {
    "POST /api/v1/mesh": CallDescription(
        "Start a task at an actor", {201: Started}, StartRequest, False, (400, 404, 409, 413),
        query={"actor": {"type": "string", "required": True}}, headers={"Idempotency-Key": _KEY},
    ),
    "GET /api/v1/mesh": CallDescription(
        "List the caller's tasks, newest first; operators list all tasks", {200: TaskList}, errors=(400,),
        query={"status": _STATUS, "parent": PARENT} | _FILTERS | {"limit": _LIMIT, "cursor": _CURSOR},
    ),
    "POST /api/v1/mesh/redrive": CallDescription(
        "Send a dead letter again, in the next generation of its task; for operators. The body is the message",
        {200: Redriven}, bytes, True, (400, 404, 409, 413),
        query={
            "actor": {"type": "string", "required": True, "description": "the actor behind the dead-letter queue"},
            "message_id": {"type": "string", "required": True, "description": "the SQS message id"},
            "sender": {"type": "string", "description": "the SenderId of the message"},
            "sent_at": {"type": "string", "format": "date-time", "description": "the SentTimestamp of the message"},
            "force": {"type": "boolean", "description": "also if the task is settled, has ended otherwise, is paused or went on"},
        },
    ),
    "GET /api/v1/mesh/{id}": CallDescription("Read a task", {200: TaskView}, errors=(404,)),
    "GET /api/v1/mesh/{id}/children": CallDescription(
        "List the children of a task, newest first", {200: TaskList}, errors=(400, 404),
        query={"status": _STATUS, "resolved": _RESOLVED, "limit": _LIMIT, "cursor": _CURSOR},
    ),
    "GET /api/v1/mesh/{id}/set": CallDescription(
        "Read the set of slices that a task waits for, with the slices that are missing", {200: TaskSet}, errors=(404,)
    ),
    "GET /api/v1/mesh/{id}/timeline": CallDescription(
        "List a task's hops with their times, first to last", {200: Timeline}, errors=(400, 404),
        query={"limit": _LIMIT | {"maximum": HOPS_LIMIT, "default": HOPS_LIMIT}, "cursor": _CURSOR},
    ),
    "GET /api/v1/mesh/{id}/payloads": CallDescription(
        "List a task's hops with kept payloads, first to last", {200: KeptHops}, errors=(404,)
    ),
    "GET /api/v1/mesh/{id}/payloads/{hop}": CallDescription(
        "Read the kept payloads before and after a hop, each cut at 256 KiB", {200: HopPayloads}, errors=(400, 404)
    ),
    "DELETE /api/v1/mesh/{id}": CallDescription(
        "Cancel a task and its descendants; an ended task stays unchanged. 202 says how a task has ended whose record follows",
        {202: Ended, 204: None},
        errors=(404,),
    ),
    "POST /api/v1/mesh/{id}/resume": CallDescription(
        "End a task's pause", {202: Resumed}, ResumeRequest, False, (400, 404, 409, 413, 422)
    ),
    "GET /callbacks": CallDescription(
        "Show the question of a pause to the holder of its link", {200: "text/html; charset=utf-8"}, errors=(404, 409),
        query={"token": {"type": "string", "required": True}},
    ),
    "POST /callbacks": CallDescription(
        "Answer a pause by its link, once", {200: Resumed}, CallbackAnswer, False, (400, 404, 409, 413, 422),
        query={"token": {"type": "string", "required": True}},
    ),
    "POST /api/v1/mesh/{id}/replay": CallDescription(
        "Start a new task from a stored envelope", {201: Replayed}, ReplayRequest, False, (400, 404, 409, 413),
        headers={"Idempotency-Key": _KEY},
    ),
    "POST /api/v1/mesh/{id}/dismiss": CallDescription(
        "Dismiss the failure of a task, with a reason, or undo that", {200: Dismissed}, DismissRequest, True, (400, 404, 409)
    ),
    "GET /api/v1/operations/failures": CallDescription(
        "Group the caller's tasks that failed, or that run again, by actor and error; operators group all tasks",
        {200: FailureList}, errors=(400,),
        query=_FILTERS | {"cursor": _CURSOR},
    ),
    "POST /tools/call": CallDescription(
        "Call a tool and wait for the result", {200: ToolAnswer, 202: ToolAnswer}, ToolRequest, True,
        (400, 404, 409, 413), headers={"Idempotency-Key": _KEY, "Prefer": {"type": "string"}},
    ),
    "POST /mcp": CallDescription(
        "Send a message of Model Context Protocol (streamable HTTP)", {200: Success, 202: None, 400: Failure, 404: Failure},
        Message, True, (406, 413), streamed=(200,),
        headers={"MCP-Protocol-Version": {"type": "string"}, "Prefer": {"type": "string"}},
    ),
    "GET /mcp": CallDescription("Open a stream of an MCP session: not supported", {}, errors=(405,)),
    "DELETE /mcp": CallDescription("End an MCP session: not supported", {}, errors=(405,)),
    "GET /api/v1/mesh/{id}/events": CallDescription(
        "Stream a task: Server-Sent Events `status`, `partial`, `final`", _EVENT_STREAM, errors=(404,),
        query=_FROM_QUERY, headers=_FROM_HEADER,
    ),
    "GET /api/v1/mesh/{id}/stream": CallDescription(
        "Stream a task with a stream token instead of a signature", _EVENT_STREAM, errors=(403, 404),
        query={"token": {"type": "string", "required": True}} | _FROM_QUERY, headers=_FROM_HEADER,
    ),
    "POST /api/v1/mesh/{id}/stream-token": CallDescription(
        "Create a token for one task's stream, valid for an hour", {201: StreamToken}, errors=(404,)
    ),
    "POST /a2a": CallDescription(
        "Send a message of Agent2Agent (JSON-RPC, versions 1.0 and 0.3)",
        {200: {"anyOf": [Success, Failure]}}, Message, True, (400, 413), streamed=(200,),
        headers={"A2A-Version": {"type": "string"}},
    ),
    "POST /a2a/tasks/{id}": CallDescription(
        "Cancel a task of Agent2Agent; `:cancel` follows its id", {200: {"type": "object"}}, errors=(404, 409)
    ),
    "GET /.well-known/agent-card.json": CallDescription("Read the agent card of the mesh", {200: {"type": "object"}}),
    "POST /api/v1/mesh/events": CallDescription(
        "Send reports, with a result for each; for operators", {200: EventResults}, _EVENTS, True,
        (400, 413),
    ),
    "POST /api/v1/mesh/{id}/events": CallDescription(
        "Send one report; for operators", {204: None}, SingleEvent, True, (400, 404, 413)
    ),
    "GET /api/v1/operations/logs/{id}": CallDescription(
        "Read what functions have logged about a task, and its job runs; for operators", {200: LogPage}, errors=(400, 404),
        query={"since": _SINCE, "source": _SOURCE, "limit": _LINES, "cursor": _CURSOR},
    ),
    "GET /api/v1/operations/actors/{actor}/logs": CallDescription(
        "Read what an actor has logged, by default in the last hour; for operators", {200: LogPage}, errors=(400, 404),
        query={"since": _SINCE, "limit": _LINES, "cursor": _CURSOR},
    ),
    "GET /api/v1/operations/runs/{run_id}/logs": CallDescription(
        "Read what driver and executors of a job run have written; for operators", {200: LogPage}, errors=(400, 404),
        query={"source": _SOURCE, "limit": _LINES, "cursor": _CURSOR},
    ),
    "GET /api/v1/operations/mesh": CallDescription(
        "Show all actors with their numbers, who sends to whom, and the tools; for operators", {200: MeshNumbers},
        query={"actor": {"type": "string", "description": "only these actors, separated by commas"}},
    ),
    "GET /api/v1/operations/actors/{actor}": CallDescription(
        "Show an actor with its settings, its durations and its recent errors; for operators", {200: ActorDetails}, errors=(404,)
    ),
    "GET /api/v1/operations/dead-letters": CallDescription(
        "Show dead letters with their bodies; all of them stay in their queues; for operators", {200: LetterPage},
        errors=(400, 404),
        query={
            "actor": {"type": "string", "description": "the actor behind the dead-letter queue"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LETTERS, "default": LETTERS},
        },
    ),
    "GET /api/v1/operations/runs": CallDescription(
        "List job runs: the open ones first, then the others, newest first; for operators", {200: RunPage}, errors=(400, 404),
        query={"actor": {"type": "string"}, "limit": _LIMIT, "cursor": _CURSOR},
    ),
    "GET /api/v1/operations/runs/{run_id}": CallDescription(
        "Read a job run with its envelopes, its verdict and its cost; for operators", {200: RunDetails}, errors=(400, 404),
        query={"limit": _LIMIT | {"maximum": MOST_MEMBERS, "default": MOST_MEMBERS}, "cursor": _CURSOR},
    ),
    "GET /api/v1/triggers": CallDescription(
        "List the triggers with their next and last slots; for operators", {200: TriggerList}
    ),
    "POST /api/v1/triggers": CallDescription(
        "Decide the slots up to a time, in order, on a local cloud; for operators", {200: DecidedSlots}, SlotsRequest,
        errors=(400, 409),
    ),
    "GET /api/v1/triggers/{trigger}": CallDescription(
        "Read a trigger with the newest tasks that it started; for operators", {200: TriggerView}, errors=(404,)
    ),
    "POST /api/v1/triggers/{trigger}/pause": CallDescription(
        "Pause a trigger: it starts nothing by itself; for operators", {200: TriggerView}, errors=(404,)
    ),
    "POST /api/v1/triggers/{trigger}/resume": CallDescription(
        "Resume a paused trigger: its schedule begins now; for operators", {200: TriggerView}, errors=(404,)
    ),
    "POST /api/v1/triggers/{trigger}/fire": CallDescription(
        "Start the task of a slot, or one for now; for operators", {202: Fired}, FireRequest, False, (400, 404, 409),
        headers={"Idempotency-Key": _KEY},
    ),
    "GET /api/v1/backfills": CallDescription("List the backfills, the newest first; for operators", {200: BackfillList}),
    "POST /api/v1/backfills": CallDescription(
        "Begin a backfill: start the slots of a schedule between two times; for operators",
        {200: BackfillView, 201: BackfillView}, BackfillRequest, True, (400, 404, 409), headers={"Idempotency-Key": _KEY},
    ),
    "GET /api/v1/backfills/{id}": CallDescription(
        "Read a backfill with its running tasks and its newest failures; for operators", {200: BackfillView}, errors=(404,)
    ),
    "POST /api/v1/backfills/{id}/resume": CallDescription(
        "Let a stopped backfill go on; for operators", {200: BackfillView}, errors=(404,)
    ),
    "DELETE /api/v1/backfills/{id}": CallDescription(
        "Cancel a backfill and its running tasks; for operators", {200: BackfillView}, errors=(404,)
    ),
    "GET /envelopes/{id}": CallDescription("Read a task in the legacy form of `/envelopes`", {200: LegacyEnvelope}, errors=(404,)),
    "GET /envelopes/{id}/stream": CallDescription(
        "Stream a task in the legacy form of `/envelopes`", _EVENT_STREAM, errors=(404,), query=_FROM_QUERY,
        headers=_FROM_HEADER,
    ),
    "POST /envelopes/{id}/progress": CallDescription(
        "Report progress in the legacy form", {204: None}, LegacyProgress, True, (400, 404, 413)
    ),
    "POST /envelopes/{id}/final": CallDescription(
        "Report an end in the legacy form", {204: None}, LegacyFinal, True, (400, 404, 413)
    ),
    "GET /jobs/{id}": CallDescription("Read a task in the legacy form of `/jobs`", {200: LegacyJob}, errors=(404,)),
    "GET /jobs/{id}/stream": CallDescription(
        "Stream a task in the legacy form of `/jobs`", _EVENT_STREAM, errors=(404,), query=_FROM_QUERY,
        headers=_FROM_HEADER,
    ),
    "GET /openapi.json": CallDescription("Read this document", {200: {"type": "object"}}),
    "GET /health": CallDescription("Check the health of the gateway", {200: Health}),
}  # fmt: skip
