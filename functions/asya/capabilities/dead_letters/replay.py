"""Replays an envelope: selects the stored copy and builds the new envelope (`protocol §12`)."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.capabilities.dead_letters.kept_inputs import KeptInputs
from asya.capabilities.legacy.options import FAILED_PAYLOAD
from asya.function.targets import TargetError, check_target, overrides
from asya.protocol import headers, states, status
from asya.protocol.api_errors import ApiError, read_body
from asya.protocol.envelope import Envelope
from asya.protocol.keys import CHECKPOINT_PREFIX, DEAD_LETTERS_PREFIX, safe_segment
from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.slices import slice_header
from asya.protocol.times import deadline_after, format_time, parse_time
from asya.protocol.tracing import hop_context
from asya.tasks.view import TaskView

# The managed headers that a replay keeps. A replayed hook's run stays one, and so does the task of a tool.
_REPLAYED_HEADERS = headers.PRODUCER_HEADERS | {headers.HOOK, headers.TOOL}
_GENERATION_AND_POSITION = re.compile(r"(\d+)/(\d+)\.json")
_POSITION = re.compile(r"(\d+)\.json")

_Count = Annotated[int, msgspec.Meta(ge=0)]


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The start of a replay: a hop, a checkpoint, or by default the failure.

    Attributes:
        hop: the position of a hop whose actor has `keep_input`.
        checkpoint: the position of a checkpoint.
        failed_only: after the failure of a set, copy the results that are stored and run only the other slices again.
        force: replay the task although it was replayed, dismissed or overtaken, or elsewhere than where it was.
    """

    hop: _Count | None = None
    checkpoint: _Count | None = None
    failed_only: bool = False
    force: bool = False

    @property
    def start(self) -> str:
        """Where the replay starts, as JSON."""
        return msgspec.json.encode(replace(self, force=False)).decode()


class _Wrapped(msgspec.Struct, frozen=True):
    original_payload: Raw


class RepeatedSlices(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the slices of a set that is opened again.

    Attributes:
        total: the slices, without the origin; None if the state of the old set has expired.
        copied: those whose results are copied at least: results that came after the end of the set are copied too.
        again: the indices of those that run again at most; None for all of them.
    """

    total: int | None
    copied: int
    again: tuple[int, ...] | None


class Replayed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The response: the new task, and the object from which it starts.

    Attributes:
        slices: after the failure of a set.
    """

    id: str
    replay_of: str
    source: str
    slices: RepeatedSlices | None = None


@dataclass(frozen=True, slots=True)
class Sources:
    """The addresses of an envelope's stored copies, by position where there may be several.

    Attributes:
        result: the result of a failed envelope, from x-sink.
        sump: the copy from x-sump.
        dead_letters: copies of dead letters.
        inputs: inputs of hops.
    """

    result: str | None = None
    sump: str | None = None
    dead_letters: Mapping[int, str] = field(default_factory=dict)
    inputs: KeptInputs = field(default_factory=KeptInputs)
    checkpoints: Mapping[int, str] = field(default_factory=dict)


def read_replay_request(body: bytes) -> ReplayRequest:
    """Read the request `POST /api/v1/mesh/{id}/replay`.

    Raises:
        ApiError: 400 with the field at fault.
    """
    request = read_body(body, ReplayRequest)
    if request.hop is not None and request.checkpoint is not None:
        raise ApiError(400, "invalid_field", "a replay starts from a hop or from a checkpoint, not both", "hop")
    if request.failed_only and (request.hop is not None or request.checkpoint is not None):
        problem = "failed_only replays a failed set; it excludes hop and checkpoint"
        raise ApiError(400, "invalid_field", problem, "failed_only")
    return request


def dead_letters_folder(envelope_id: str) -> str:
    """The folder of an envelope's dead letters."""
    return f"{DEAD_LETTERS_PREFIX}{safe_segment(envelope_id)}/"


def checkpoints_folder(envelope_id: str) -> str:
    """The folder of an envelope's checkpoints."""
    return f"{CHECKPOINT_PREFIX}{safe_segment(envelope_id)}/"


def by_position(folder: str, keys: Iterable[str]) -> dict[int, str]:
    """The keys `{generation}/{position}.json` and `{position}.json` below a folder, by position; the latest generation wins."""
    latest: dict[int, tuple[int, str]] = {}
    for key in keys:
        name = key.removeprefix(folder)
        if match := _GENERATION_AND_POSITION.fullmatch(name):
            generation, position = int(match[1]), int(match[2])
        elif match := _POSITION.fullmatch(name):
            generation, position = 0, int(match[1])
        else:
            continue
        latest[position] = max(latest.get(position, (-1, "")), (generation, key))
    return {position: key for position, (_, key) in sorted(latest.items())}


def choose_source(request: ReplayRequest, sources: Sources, envelope_id: str, task: TaskView | None) -> str:
    """Choose the address of the object from which a replay starts.

    Args:
        task: the task of the envelope; None without a record.

    Raises:
        ApiError: 409 with the possible starts, or 404 if neither a record nor a copy tells of the envelope.
    """
    if task is None and sources == Sources():
        raise ApiError(404, "not_found", f"there is no task {envelope_id!r}, and nothing of it is kept")
    failure = _failure(sources, task)
    if request.hop is not None:
        kept = sources.inputs.counting.get(request.hop)
        start = kept.uri if kept is not None else None
        problem = f"the input of hop {request.hop} of {envelope_id!r} is not stored (its actor needs keep_input: true)"
        if doubt := sources.inputs.doubted.get(request.hop):
            problem = f"no input of hop {request.hop} of {envelope_id!r} counts: {doubt}"
    elif request.checkpoint is not None:
        start = sources.checkpoints.get(request.checkpoint)
        problem = f"there is no checkpoint of {envelope_id!r} at position {request.checkpoint}"
    else:
        start = failure
        problem = f"no failure of {envelope_id!r} is stored" if task else f"there is no task {envelope_id!r}"
        if task is not None and not task.has_failed:
            problem = f"{envelope_id!r} has not failed: its status is {task.status}"
    if start is None:
        raise ApiError(409, "nothing_to_replay", f"{problem}; {_offer(sources, failure)}")
    return start


def _failure(sources: Sources, task: TaskView | None) -> str | None:
    """The copy of the latest failure. Copies of earlier failures may exist, so the record's reason decides."""
    if task is not None and not task.has_failed:
        return None
    last_letter = sources.dead_letters[max(sources.dead_letters)] if sources.dead_letters else None
    candidates = [sources.result, sources.sump, last_letter]
    if task is not None and task.reason == "DeliveryExhausted":
        candidates = [last_letter, sources.result, sources.sump]
    return next((address for address in candidates if address is not None), None)


def _offer(sources: Sources, failure: str | None) -> str:
    offers = []
    if failure is not None:
        offers.append("where it failed")
    if sources.inputs.counting:
        offers.append(f"hop {_list(sources.inputs.counting)}")
    if sources.checkpoints:
        offers.append(f"checkpoint {_list(sources.checkpoints)}")
    return f"it can be replayed from {' or '.join(offers)}" if offers else "nothing of it is kept"


def _list(positions: Iterable[int]) -> str:
    return ", ".join(map(str, positions))


@dataclass(frozen=True, slots=True)
class ReplayStart:
    """The new values of a replay: its id, its start, its address for reports, and 16 hexadecimal digits for its trace.

    Attributes:
        tenant: who replays, for actors that serve tenants in turns; empty if nobody asks.
    """

    envelope_id: str
    at: datetime
    gateway_url: str
    span: str
    tenant: str = ""


def replay_envelope(stored: Envelope, mesh: MeshTable, start: ReplayStart, *, repeats_set: bool = False) -> Envelope:
    """The new envelope: the stored route and payload with a new id, status and trace.

    Its deadline is as far ahead as the deadline of the old envelope was at its creation.

    Args:
        repeats_set: whether it may start at a fan-in actor, which then repeats its fan-out.

    Raises:
        ApiError: 409 if the envelope cannot start at that actor.
    """
    target = _check_start(stored, mesh, repeats_set=repeats_set)
    deadline = _deadline(stored, start.at)
    own = {
        name: raw for name, raw in stored.headers.items() if not headers.is_managed(name) or name in _REPLAYED_HEADERS
    }
    return replace(
        stored,
        id=start.envelope_id,
        payload=_as_received(stored, mesh.actors[target]),
        parent_id=None,
        headers=own,
        status=status.created(stored.route.curr, format_time(start.at), deadline),
        status_extra={},
    ).with_headers(
        {
            headers.REPLAY_OF: stored.id,
            headers.TENANT: start.tenant or None,
            headers.GATEWAY_URL: start.gateway_url,
            headers.MESH_VERSION: mesh.version or None,
            headers.TRACEPARENT: str(hop_context(None, start.envelope_id, start.span)),
        }
    )


def _deadline(stored: Envelope, now: datetime) -> str | None:
    """The deadline of the new envelope, as far ahead as `protocol §2.deadline.longest` lets it; None if the old one had none."""
    old = stored.status
    if old is None or not old.deadline_at or not old.created_at:
        return None
    allowed = parse_time(old.deadline_at) - parse_time(old.created_at)
    return format_time(deadline_after(now, allowed.total_seconds()))


def _as_received(stored: Envelope, spec: Actor) -> Raw:
    """The payload before the failure; a wrapped payload (`failed_payload: wrapped`) is unwrapped."""
    if FAILED_PAYLOAD.of(spec) == "wrapped" and stored.status is not None and stored.status.phase == states.FAILED:
        try:
            return msgspec.json.decode(stored.payload, type=_Wrapped).original_payload
        except msgspec.MsgspecError:
            pass  # stored before its actor had failed_payload: wrapped
    return stored.payload


def check_no_slice(stored: Envelope) -> None:
    """Check that an envelope is no slice of a set: only the set can take its result, so its origin repeats it.

    Raises:
        ApiError: 409 with the command that repeats the set.
    """
    try:
        header = slice_header(stored)
    except ValueError as error:
        raise ApiError(409, "slice", f"{stored.id!r} has a malformed slice header: {error}") from None
    if header is not None:
        if header.origin_id == stored.id:  # the origin of a set within that of its slice
            header = header.enclosing or header
        command = f"asya replay {shlex.quote(header.origin_id)} --failed-only"
        problem = f"{stored.id!r} is slice {header.slice_index} of a set, which its origin repeats: `{command}`"
        raise ApiError(409, "slice", problem)


def _check_start(stored: Envelope, mesh: MeshTable, *, repeats_set: bool) -> str:
    """Check that the envelope may start, and return the actor to send it to."""
    curr = stored.route.curr
    if not curr:
        raise ApiError(409, "route_ended", f"the route of {stored.id!r} had come to its end; nothing is left to do")
    try:
        target = check_target(mesh, overrides(stored).get(curr, curr))
    except TargetError as error:
        raise ApiError(409, "unknown_actor", f"it would start at {curr!r}, but {error}") from None
    check_no_slice(stored)
    if mesh.actors[target].kind == "fan_in" and not repeats_set:
        command = f"asya replay {shlex.quote(stored.id)}"
        problem = f"it would start at {curr!r}, which only merges slices; `{command}` repeats a failed set"
        raise ApiError(409, "fan_in", problem)
    return target
