"""Replaying an envelope: what may be started from, and the new envelope (`protocol §12`)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.messaging.targets import UnknownTargetError, check_target, overrides
from asya.protocol import headers, status
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Envelope
from asya.protocol.keys import CHECKPOINT_PREFIX, DEAD_LETTERS_PREFIX, INPUTS_PREFIX, safe_segment
from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.slices import slice_header
from asya.protocol.times import format_time, parse_time
from asya.protocol.tracing import hop_traceparent
from asya.tasks.view import TaskView

# Of the managed headers what its producer said goes on to hold; a hook's run stays one, and ends as silently.
_KEPT = headers.PRODUCER_HEADERS | {headers.HOOK}
_GENERATION_AND_POSITION = re.compile(r"(\d+)/(\d+)\.json")
_POSITION = re.compile(r"(\d+)\.json")

_Count = Annotated[int, msgspec.Meta(ge=0)]


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where to start from; at most one of the two. Neither: where it failed.

    Attributes:
        hop: position of a hop of an actor with `keep_input`.
        checkpoint: position at which x-checkpoint kept the envelope.
    """

    hop: _Count | None = None
    checkpoint: _Count | None = None


class _Wrapped(msgspec.Struct, frozen=True):
    original_payload: Raw


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: the new task, and the object it starts from."""

    id: str
    replay_of: str
    source: str


@dataclass(frozen=True, slots=True)
class Sources:
    """What is kept of an envelope: objects' addresses, by position where there may be several.

    Attributes:
        result: x-sink's, of an envelope that failed.
        sump: x-sump's copy.
        dead_letters: copies of messages that nobody could take.
        hops: inputs of hops.
    """

    result: str | None = None
    sump: str | None = None
    dead_letters: Mapping[int, str] = field(default_factory=dict)
    hops: Mapping[int, str] = field(default_factory=dict)
    checkpoints: Mapping[int, str] = field(default_factory=dict)


def read_replay(body: bytes) -> ReplayRequest:
    """Read the request `POST /api/v1/mesh/{id}/replay`.

    Raises:
        ApiError: 400 naming the field.
    """
    try:
        asked = msgspec.json.decode(body or b"{}", type=ReplayRequest)
    except msgspec.ValidationError as error:
        place = str(error).partition(" - at `$.")[2]
        raise ApiError(400, "invalid_field", str(error), place.rstrip("`") or None) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "invalid_json", f"the body is no JSON: {error}") from None
    if asked.hop is not None and asked.checkpoint is not None:
        raise ApiError(400, "invalid_field", "a replay starts from a hop or from a checkpoint, not both", "hop")
    return asked


def inputs_folder(envelope_id: str) -> str:
    """Where the inputs of its hops are kept."""
    return f"{INPUTS_PREFIX}{safe_segment(envelope_id)}/"


def dead_letters_folder(envelope_id: str) -> str:
    """Where copies of its dead letters are."""
    return f"{DEAD_LETTERS_PREFIX}{safe_segment(envelope_id)}/"


def checkpoints_folder(envelope_id: str) -> str:
    """Where its checkpoints are."""
    return f"{CHECKPOINT_PREFIX}{safe_segment(envelope_id)}/"


def by_position(folder: str, keys: Iterable[str]) -> dict[int, str]:
    """What lies below a folder as `{generation}/{position}.json` or `{position}.json`; of each position the latest generation."""
    found: dict[int, tuple[int, str]] = {}
    for key in keys:
        name = key.removeprefix(folder)
        if match := _GENERATION_AND_POSITION.fullmatch(name):
            generation, position = int(match[1]), int(match[2])
        elif match := _POSITION.fullmatch(name):
            generation, position = 0, int(match[1])
        else:
            continue
        found[position] = max(found.get(position, (-1, "")), (generation, key))
    return {position: key for position, (_, key) in sorted(found.items())}


def chosen(asked: ReplayRequest, found: Sources, envelope_id: str, task: TaskView | None) -> str:
    """The address of the object to start from.

    Args:
        task: its record; None if there is none (any more).

    Raises:
        ApiError: 409, listing what there is.
    """
    failure = _failure(found, task)
    if asked.hop is not None:
        start = found.hops.get(asked.hop)
        problem = f"the input of hop {asked.hop} of {envelope_id!r} was not kept (its actor needs keep_input: true)"
    elif asked.checkpoint is not None:
        start = found.checkpoints.get(asked.checkpoint)
        problem = f"there is no checkpoint of {envelope_id!r} at position {asked.checkpoint}"
    else:
        start = failure
        problem = f"nothing is kept of a failure of {envelope_id!r}"
        if task is not None and task.status != "failed":
            problem = f"{envelope_id!r} has not failed: it is {task.status}"
    if start is None:
        raise ApiError(409, "nothing_to_replay", f"{problem}; {_offer(found, failure)}")
    return start


def _failure(found: Sources, task: TaskView | None) -> str | None:
    """Where it failed last. Of earlier failures copies may have stayed behind, so the record is asked how it ended."""
    if task is not None and task.status != "failed":
        return None
    last_letter = found.dead_letters[max(found.dead_letters)] if found.dead_letters else None
    kept = [found.result, found.sump, last_letter]
    if task is not None and task.reason == "DeliveryExhausted":
        kept = [last_letter, found.result, found.sump]
    return next((address for address in kept if address is not None), None)


def _offer(found: Sources, failure: str | None) -> str:
    offers = []
    if failure is not None:
        offers.append("where it failed")
    if found.hops:
        offers.append(f"hop {_listed(found.hops)}")
    if found.checkpoints:
        offers.append(f"checkpoint {_listed(found.checkpoints)}")
    return f"it can be replayed from {' or '.join(offers)}" if offers else "there is nothing that it could start from"


def _listed(positions: Iterable[int]) -> str:
    return ", ".join(map(str, positions))


@dataclass(frozen=True, slots=True)
class Start:
    """What is new about a replay: its id, when and where it reports to, 16 hexadecimal digits for its trace."""

    envelope_id: str
    at: datetime
    gateway_url: str
    span: str


def replayed(kept: Envelope, mesh: MeshTable, start: Start) -> Envelope:
    """The new envelope: route and payload as they were kept, a life of its own otherwise.

    Its deadline is as far off as that of the old one was when that was made.

    Raises:
        ApiError: 409 if it cannot be started there.
    """
    target = _checked(kept, mesh)
    was = kept.status
    deadline = None
    if was is not None and was.deadline_at and was.created_at:
        deadline = format_time(start.at + (parse_time(was.deadline_at) - parse_time(was.created_at)))
    own = {name: raw for name, raw in kept.headers.items() if not headers.is_managed(name) or name in _KEPT}
    return replace(
        kept,
        id=start.envelope_id,
        payload=_as_received(kept, mesh.actors[target]),
        parent_id=None,
        headers=own,
        status=status.created(kept.route.curr, format_time(start.at), deadline),
        status_extra={},
    ).with_headers(
        {
            headers.REPLAY_OF: kept.id,
            headers.GATEWAY_URL: start.gateway_url,
            headers.TRACEPARENT: hop_traceparent(None, start.envelope_id, start.span),
        }
    )


def _as_received(kept: Envelope, spec: Actor) -> Raw:
    """The payload that failed, also where it was kept with the error around it (`failed_payload: wrapped`)."""
    if spec.failed_payload == "wrapped" and kept.status is not None and kept.status.phase == "failed":
        try:
            return msgspec.json.decode(kept.payload, type=_Wrapped).original_payload
        except msgspec.MsgspecError:
            pass  # kept before its actor was told to wrap
    return kept.payload


def _checked(kept: Envelope, mesh: MeshTable) -> str:
    """The actor whose queue it is to be sent to."""
    curr = kept.route.curr
    if not curr:
        raise ApiError(409, "route_ended", f"the route of {kept.id!r} had come to its end; nothing is left to do")
    try:
        target = check_target(mesh, overrides(kept).get(curr, curr))
    except UnknownTargetError as error:
        raise ApiError(409, "unknown_actor", f"it would start at {curr!r}, but {error}") from None
    try:
        header = slice_header(kept)
    except ValueError as error:
        raise ApiError(409, "slice", f"{kept.id!r} is a slice that cannot be told: {error}") from None
    if header is not None:
        problem = f"{kept.id!r} is slice {header.slice_index} of a set; replay its origin {header.origin_id!r}"
        raise ApiError(409, "slice", f"{problem} from before the fan-out")
    if mesh.actors[target].kind == "fan_in":
        problem = f"it failed at {curr!r}, which only puts slices together; replay it from before the fan-out"
        raise ApiError(409, "fan_in", problem)
    return target
