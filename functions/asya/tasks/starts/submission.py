"""Converts a request into the first envelope and the record of a task (`protocol §1`, `§2`, `§13`)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from msgspec import Raw

from asya.function.hop import Delivery
from asya.function.sqs import queue_group
from asya.function.targets import TargetError, check_target, overrides
from asya.protocol import codec, names, states, status
from asya.protocol import headers as header_names
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import NULL, Envelope, Route
from asya.protocol.mesh_keys import LONGEST_TIMEOUT, SHORTEST_TIMEOUT
from asya.protocol.mesh_table import MeshTable
from asya.protocol.strict_json import decode_value, escape
from asya.protocol.task import StartedBy, TaskRecord
from asya.protocol.times import format_time
from asya.protocol.tracing import TraceContext, hop_context, trace_context

_FIELDS = ("payload", "headers", "timeout")
_object_decoder = msgspec.json.Decoder(dict[str, Raw])


@dataclass(frozen=True, slots=True)
class Submission:
    """A request to start a task.

    Attributes:
        headers: user headers, and the managed headers that producers may set.
        timeout: time from now to the deadline; None for no deadline.
        next: the actors after the first; empty if the request names only an actor.
        tool: the tool whose route this is; None if the request names an actor.
    """

    actor: str
    payload: Raw
    headers: dict[str, Raw]
    timeout: timedelta | None
    next: tuple[str, ...] = ()
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of an envelope.

    Attributes:
        gateway_url: the base URL of the API for reports.
        span: the span id for the trace, 16 hexadecimal digits.
        traceparent, tracestate: the trace headers of the request, if present.
        tenant: who starts the task, for actors that serve tenants in turns; empty if nobody asks.
    """

    gateway_url: str
    span: str
    traceparent: str | None = None
    tracestate: str | None = None
    tenant: str = ""


def read_submission(body: bytes, actor: str | None, mesh: MeshTable) -> Submission:
    """Read the request `POST /api/v1/mesh?actor=A` with body `{payload?, headers?, timeout?}`.

    Raises:
        ApiError: 400 with the field; 404 for an unknown or reserved actor.
    """
    if not actor:
        raise ApiError(400, "missing_actor", "actor is missing; call POST /api/v1/mesh?actor=NAME", "actor")
    members = _members(body)
    for name in members:
        if name in ("route", "next", "prev", "curr"):
            raise ApiError(
                400, "route_not_allowed", f"{name!r} is not allowed; the parameter actor names the first actor", name
            )
        if name not in _FIELDS:
            raise ApiError(400, "unknown_field", f"unknown field {name!r}; the fields are {', '.join(_FIELDS)}", name)
    submission = Submission(
        actor=actor,
        payload=_checked(members["payload"], "payload") if "payload" in members else NULL,
        headers=_headers(members.get("headers")),
        timeout=_timeout(members.get("timeout")),
    )
    _check_override(submission)
    _check_actor(submission, mesh)
    return submission


def first_envelope(
    submission: Submission, envelope_id: str, created_at: datetime, origin: Origin, version: str = ""
) -> Envelope:
    """Build the first envelope of a submission.

    Args:
        version: the version of the mesh that the gateway has; empty if it has none.
    """
    at = format_time(created_at)
    deadline = format_time(created_at + submission.timeout) if submission.timeout is not None else None
    callers = caller_context(origin)
    return Envelope(
        id=envelope_id,
        route=Route((), submission.actor, submission.next),
        headers=submission.headers,
        status=status.created(submission.actor, at, deadline),
        payload=submission.payload,
    ).with_headers(
        {
            header_names.GATEWAY_URL: origin.gateway_url,
            header_names.MESH_VERSION: version or None,
            header_names.TENANT: origin.tenant or None,
            header_names.TOOL: submission.tool,
            header_names.TRACEPARENT: str(hop_context(callers, envelope_id, origin.span)),
            header_names.TRACESTATE: origin.tracestate if callers is not None else None,
        }
    )


def caller_context(origin: Origin) -> TraceContext | None:
    """The trace context of the caller; None without a valid one."""
    return trace_context(Raw(msgspec.json.encode(origin.traceparent))) if origin.traceparent is not None else None


@dataclass(frozen=True, slots=True)
class FirstMessage:
    """The first envelope of a task, and its delivery.

    Attributes:
        caller: the trace context of the request; None without one.
    """

    envelope: Envelope
    delivery: Delivery
    caller: TraceContext | None = None


def first_message(submission: Submission, origin: Origin, mesh: MeshTable) -> Callable[[str, datetime], FirstMessage]:
    """Return a function that builds the first message from the id and the creation time of a task."""

    def compose(task_id: str, created_at: datetime) -> FirstMessage:
        envelope = first_envelope(submission, task_id, created_at, origin, mesh.version)
        queue = first_queue(envelope)
        group = queue_group(envelope, mesh.actors[queue])
        delivery = Delivery(queue, codec.encode(envelope), "next", group=group)
        return FirstMessage(envelope, delivery, caller_context(origin))

    return compose


def first_record(envelope: Envelope, owner: str) -> TaskRecord:
    """Build the record of a new task that a caller starts, or that repeats another one."""
    initial = envelope.status or status.Status()
    return TaskRecord(
        id=envelope.id,
        status=states.PENDING,
        created_at=initial.created_at or "",
        updated_at=initial.created_at or "",
        owner=owner,
        deadline_at=initial.deadline_at,
        actor=envelope.route.curr,
        route=envelope.route,
        attempt=1,
        tool=envelope.tool,
        started_by=_started_by(envelope),
    )


def _started_by(envelope: Envelope) -> StartedBy:
    replayed = decode_value(envelope.headers.get(header_names.REPLAY_OF, NULL))
    return StartedBy(kind="replay", name=replayed) if isinstance(replayed, str) else StartedBy(kind="caller")


def first_queue(envelope: Envelope) -> str:
    """The actor whose queue receives a new envelope: the first actor, or its override."""
    return overrides(envelope).get(envelope.route.curr, envelope.route.curr)


def is_stealth(submission: Submission) -> bool:
    """Whether the envelope is a stealth envelope, without reports and a record (`protocol §3`)."""
    return decode_value(submission.headers.get(header_names.MESH_STATUS, NULL)) == "off"


def _members(body: bytes) -> dict[str, Raw]:
    if not body:
        return {}
    try:
        return _object_decoder.decode(body)
    except msgspec.ValidationError:
        raise ApiError(400, "invalid_json", "the body must be a JSON object") from None
    except msgspec.DecodeError as error:
        raise ApiError(400, "invalid_json", f"the body is not valid JSON: {error}") from None
    except (RecursionError, UnicodeDecodeError):
        raise ApiError(400, "invalid_json", "the body is nested too deeply or not UTF-8") from None


def _checked(raw: Raw, field: str) -> Raw:
    """Check that every actor can read the JSON, and escape it to ASCII."""
    try:
        decode_value(raw)
    except ValueError as error:
        raise ApiError(400, "invalid_json", f"{field}: {error}", field) from None
    return Raw(escape(bytes(raw)))


def _headers(raw: Raw | None) -> dict[str, Raw]:
    if raw is None or bytes(raw) == b"null":
        return {}
    try:
        headers = _object_decoder.decode(raw)
    except msgspec.MsgspecError:
        raise ApiError(400, "invalid_field", "headers must be a JSON object", "headers") from None
    return {name: _checked(value, f"headers.{name}") for name, value in headers.items() if _may_set(name)}


def _may_set(name: str) -> bool:
    return name in header_names.PRODUCER_HEADERS or not header_names.is_managed(name.lower())


def _timeout(raw: Raw | None) -> timedelta | None:
    try:
        seconds = msgspec.json.decode(raw or b"null", type=float | None)
    except msgspec.MsgspecError:
        raise ApiError(400, "invalid_field", "timeout must be a number of seconds", "timeout") from None
    if seconds is None:
        return None
    if not SHORTEST_TIMEOUT <= seconds <= LONGEST_TIMEOUT:
        problem = f"timeout is {seconds:g} s; it must be from {SHORTEST_TIMEOUT:g} s to {LONGEST_TIMEOUT:g} s"
        raise ApiError(400, "invalid_field", problem, "timeout")
    return timedelta(seconds=seconds)


def _check_override(submission: Submission) -> None:
    field = f"headers.{header_names.ROUTE_OVERRIDE}"
    raw = submission.headers.get(header_names.ROUTE_OVERRIDE, NULL)
    try:
        msgspec.json.decode(raw, type=dict[str, str] | None)
    except msgspec.MsgspecError:
        problem = f"{field} must map actor names to actor names"
        raise ApiError(400, "invalid_field", problem, field) from None


def _check_actor(submission: Submission, mesh: MeshTable) -> None:
    """Check that the actor is the user's, and that it or its override exists."""
    if names.is_reserved(submission.actor):
        raise ApiError(
            404, "unknown_actor", f"actor {submission.actor!r} is reserved; name an actor of your own", "actor"
        )
    probe = Envelope(id="-", route=Route((), submission.actor, ()), headers=submission.headers, payload=NULL)
    try:
        check_target(mesh, first_queue(probe))
    except TargetError as error:
        raise ApiError(404, "unknown_actor", str(error), "actor") from None
