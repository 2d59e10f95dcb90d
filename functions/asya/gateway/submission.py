"""Starting a task: from a request to the envelope and the record it begins with (`protocol §1`, `§2`, `§13`)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from msgspec import Raw

from asya.messaging.delivery import Delivery
from asya.messaging.fair_queues import queue_group
from asya.messaging.targets import UnknownTargetError, check_target, overrides
from asya.protocol import codec, names, status
from asya.protocol import headers as header_names
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import NULL, Envelope
from asya.protocol.mesh_table import MeshTable
from asya.protocol.route import Route
from asya.protocol.strict_json import decode_value, escape
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.protocol.tracing import hop_traceparent

SHORTEST_TIMEOUT = 2.0  # seconds
LONGEST_TIMEOUT = 366 * 86400.0

_FIELDS = ("payload", "headers", "timeout")
_object_decoder = msgspec.json.Decoder(dict[str, Raw])


@dataclass(frozen=True, slots=True)
class Submission:
    """What somebody asks to be started.

    Attributes:
        headers: without managed ones but for those a producer may set.
        timeout: time from now to the deadline; None for no deadline.
        next: the actors behind the first; whoever only names an actor leaves them to it.
    """

    actor: str
    payload: Raw
    headers: dict[str, Raw]
    timeout: timedelta | None
    next: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an envelope comes from.

    Attributes:
        gateway_url: base of the API it was submitted to.
        span: 16 hexadecimal digits for the trace.
        traceparent, tracestate: of the request, if it is part of a trace.
    """

    gateway_url: str
    span: str
    traceparent: str | None = None
    tracestate: str | None = None


def read_submission(body: bytes, actor: str | None, mesh: MeshTable) -> Submission:
    """Read the request `POST /api/v1/mesh?actor=A` with body `{payload?, headers?, timeout?}`.

    Raises:
        ApiError: 400 naming the field; 404 for an actor that is not in the mesh or reserved.
    """
    if not actor:
        raise ApiError(400, "missing_actor", "say which actor comes first: POST /api/v1/mesh?actor=NAME", "actor")
    members = _members(body)
    for name in members:
        if name in ("route", "next", "prev", "curr"):
            raise ApiError(
                400, "route_not_allowed", f"a request has no {name!r}: the actor to start with is the parameter", name
            )
        if name not in _FIELDS:
            raise ApiError(400, "unknown_field", f"there is no field {name!r}; there are {', '.join(_FIELDS)}", name)
    submission = Submission(
        actor=actor,
        payload=_checked(members["payload"], "payload") if "payload" in members else NULL,
        headers=_headers(members.get("headers")),
        timeout=_timeout(members.get("timeout")),
    )
    _check_override(submission)
    _check_actor(submission, mesh)
    return submission


def first_envelope(submission: Submission, envelope_id: str, created_at: datetime, origin: Origin) -> Envelope:
    """The envelope a submission starts as."""
    at = format_time(created_at)
    deadline = format_time(created_at + submission.timeout) if submission.timeout is not None else None
    received = Raw(msgspec.json.encode(origin.traceparent)) if origin.traceparent is not None else None
    trace = hop_traceparent(received, envelope_id, origin.span)
    continues = origin.traceparent is not None and origin.traceparent[:35] == trace[:35]
    return Envelope(
        id=envelope_id,
        route=Route((), submission.actor, submission.next),
        headers=submission.headers,
        status=status.created(submission.actor, at, deadline),
        payload=submission.payload,
    ).with_headers(
        {
            header_names.GATEWAY_URL: origin.gateway_url,
            header_names.TRACEPARENT: trace,
            header_names.TRACESTATE: origin.tracestate if continues else None,
        }
    )


def first_message(
    submission: Submission, origin: Origin, mesh: MeshTable
) -> Callable[[str, datetime], tuple[Envelope, Delivery]]:
    """Makes the envelope, and where it is to be sent, from a task's id and the time it is created at."""

    def compose(task_id: str, created_at: datetime) -> tuple[Envelope, Delivery]:
        envelope = first_envelope(submission, task_id, created_at, origin)
        queue = first_queue(envelope)
        group = queue_group(envelope, mesh.actors[queue])
        return envelope, Delivery(queue, codec.encode(envelope), "next", group=group)

    return compose


def first_record(envelope: Envelope, owner: str) -> TaskRecord:
    """The record of a task that is about to be sent on its way."""
    born = envelope.status or status.Status()
    return TaskRecord(
        id=envelope.id,
        status="pending",
        created_at=born.created_at or "",
        updated_at=born.created_at or "",
        owner=owner,
        deadline_at=born.deadline_at,
        actor=envelope.route.curr,
        route=envelope.route,
        attempt=1,
    )


def first_queue(envelope: Envelope) -> str:
    """The actor whose queue a new envelope goes to: the route keeps the logical name, an override the actual one."""
    return overrides(envelope).get(envelope.route.curr, envelope.route.curr)


def is_stealth(submission: Submission) -> bool:
    """Whether the producer wants no reporting at all, hence no record (`protocol §3`)."""
    return decode_value(submission.headers.get(header_names.MESH_STATUS, NULL)) == "off"


def _members(body: bytes) -> dict[str, Raw]:
    if not body:
        return {}
    try:
        return _object_decoder.decode(body)
    except msgspec.ValidationError:
        raise ApiError(400, "invalid_json", "the body must be a JSON object") from None
    except msgspec.DecodeError as error:
        raise ApiError(400, "invalid_json", f"the body is no JSON: {error}") from None
    except (RecursionError, UnicodeDecodeError):
        raise ApiError(400, "invalid_json", "the body is nested too deeply or not UTF-8") from None


def _checked(raw: Raw, field: str) -> Raw:
    """The same JSON in ASCII, once it is sure that every actor will be able to read it."""
    try:
        decode_value(raw)
    except ValueError as error:
        raise ApiError(400, "invalid_json", f"{field}: {error}", field) from None
    return Raw(escape(bytes(raw)))


def _headers(raw: Raw | None) -> dict[str, Raw]:
    if raw is None or bytes(raw) == b"null":
        return {}
    try:
        given = _object_decoder.decode(raw)
    except msgspec.MsgspecError:
        raise ApiError(400, "invalid_field", "headers must be a JSON object", "headers") from None
    return {name: _checked(value, f"headers.{name}") for name, value in given.items() if _may_set(name)}


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
        problem = f"timeout is {seconds:g} s; from {SHORTEST_TIMEOUT:g} s to {LONGEST_TIMEOUT:g} s are possible"
        raise ApiError(400, "invalid_field", problem, "timeout")
    return timedelta(seconds=seconds)


def _check_override(submission: Submission) -> None:
    field = f"headers.{header_names.ROUTE_OVERRIDE}"
    raw = submission.headers.get(header_names.ROUTE_OVERRIDE, NULL)
    try:
        msgspec.json.decode(raw, type=dict[str, str] | None)
    except msgspec.MsgspecError:
        problem = f"{field} must map names of actors to names of actors"
        raise ApiError(400, "invalid_field", problem, field) from None


def _check_actor(submission: Submission, mesh: MeshTable) -> None:
    """The actor must be the user's own; where another takes its place, that one must be there instead."""
    if names.is_reserved(submission.actor):
        raise ApiError(404, "unknown_actor", f"actor {submission.actor!r} is reserved", "actor")
    probe = Envelope(id="-", route=Route((), submission.actor, ()), headers=submission.headers, payload=NULL)
    try:
        check_target(mesh, first_queue(probe))
    except UnknownTargetError as error:
        raise ApiError(404, "unknown_actor", str(error), "actor") from None
