"""Decides whether a set of slices waits, merges or fails, and repeats fan-outs (`protocol §9`, `§12.set`).

A decision depends on the state of the set alone. Messages about a set (a slice, an end, a timeout check) therefore give the
same result in any order and any number of times. A decision is saved before anything is sent. The envelope is built from the
decision and the stored slices, so a repeated attempt sends the same bytes.

For a repeated fan-out the gateway records where the frames are. It sends an envelope to the fan-in actor, which sends
the slices again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.function.hop import Delivery, Hop
from asya.function.targets import TargetError
from asya.protocol import headers, ids, names, states, status
from asya.protocol.codec import decode, encode
from asya.protocol.envelope import NULL, Envelope, Frame, Route
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import FanIn
from asya.protocol.raw_values import insert
from asya.protocol.slices import TOO_MANY_SLICES, SliceHeader, decode_header, enclosing_header, slice_header
from asya.protocol.status import Reason
from asya.protocol.times import format_time, parse_time
from asya.sidecar import outcome

ORIGIN = 0
_MAX_LISTED = 10  # indices in an error message


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The decision about a set; saved once.

    Attributes:
        how: `merged`, `failed` or `canceled`: how the origin leaves. `gone`: the origin ended elsewhere, nothing leaves.
        at: the time of the decision (RFC 3339), and of the status of the envelope that leaves.
        missing: items that are null in the merged list.
        reason, error: of a failure.
    """

    how: Literal["merged", "failed", "canceled", "gone"]
    at: str
    missing: tuple[int, ...] = ()
    reason: str = ""
    error: ErrorInfo | None = None


@dataclass(frozen=True, slots=True)
class SetState:
    """The known state of a set.

    Attributes:
        slice_count: slices of the set, the origin (slice 0) included.
        arrived: the stored slices.
        lost: slices that ended without a result. A lost slice that arrives later counts as arrived.
    """

    slice_count: int
    arrived: frozenset[int]
    lost: frozenset[int]
    due_at: datetime
    decision: Decision | None = None
    delivered: bool = False

    @property
    def has_origin(self) -> bool:
        """Whether slice 0 is stored."""
        return ORIGIN in self.arrived

    def is_closed_to(self, index: int) -> bool:
        """Whether a slice comes too late: the set has ended, or will end, without its content."""
        if self.decision is None or index == ORIGIN:
            return self.delivered and index not in self.arrived
        return self.decision.how != "merged" or index in self.decision.missing

    @property
    def missing(self) -> frozenset[int]:
        """The items that have not arrived, of the items that a set may have: the stored `slice_count` may be larger."""
        return frozenset(range(1, min(self.slice_count, headers.MAX_SLICES))) - self.arrived


@dataclass(frozen=True, slots=True)
class Incomplete:
    """The set waits for more slices."""


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge the stored items; the `missing` ones become null."""

    missing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Fail:
    """The set cannot be completed.

    Attributes:
        message: the error message, unless a lost slice has an error of its own.
        slice_index: the lost slice that fails the set; the origin ends with its error.
    """

    reason: Reason
    message: str
    slice_index: int | None = None


SetAction = Incomplete | Merge | Fail


def decide(state: SetState, rule: FanIn, *, now: datetime) -> SetAction:
    """Decide what to do with a set that has no decision yet.

    A failure may be decided before slice 0 arrives; slice 0 then leaves on its arrival.
    """
    if state.slice_count > headers.MAX_SLICES:
        # A version without this limit has stored it, and its slices are refused now.
        return Fail("SliceFailed", TOO_MANY_SLICES)
    missing, lost = state.missing, state.lost & state.missing
    if state.has_origin and not missing:
        return Merge()
    if lost and not _tolerates(len(lost), state, rule):
        return _lost_slices(lost, state)
    if now < state.due_at:
        if state.has_origin and lost == missing:
            return Merge(tuple(sorted(missing)))
        return Incomplete()
    can_merge = state.has_origin and _tolerates(len(missing), state, rule)
    return Merge(tuple(sorted(missing))) if can_merge else _timeout(state)


def _tolerates(missing_count: int, state: SetState, rule: FanIn) -> bool:
    """Whether the rule allows a merge without this many items."""
    if rule.on_failure == "fail":
        return missing_count == 0
    return state.slice_count - 1 - missing_count >= (rule.quorum or 0)


def _lost_slices(lost: frozenset[int], state: SetState) -> Fail:
    first = min(lost)
    more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    return Fail("SliceFailed", f"slice {first}{more} of {state.slice_count} ended without a result", first)


def _timeout(state: SetState) -> Fail:
    missing = sorted(state.missing | (frozenset() if state.has_origin else {ORIGIN}))
    indices = ", ".join(map(str, missing[:_MAX_LISTED])) + (", …" if len(missing) > _MAX_LISTED else "")
    return Fail("FanInTimeout", f"{len(missing)} of {state.slice_count} slices did not arrive in time: {indices}")


def to_decision(action: Merge | Fail, slice_error: ErrorInfo | None, *, now: datetime) -> Decision:
    """Turn an action into the decision to save.

    Args:
        slice_error: the error of the lost slice, if known.
    """
    at = format_time(now)
    if isinstance(action, Merge):
        return Decision(how="merged", at=at, missing=action.missing)
    error = slice_error or ErrorInfo(type=action.reason, message=action.message)
    return Decision(how=states.FAILED, at=at, reason=action.reason, error=error)


class SetTooLargeError(ValueError):
    """The results of a set are more than the function that merges them can hold. They would end its process at each try."""

    def __init__(self, limit: int) -> None:
        """Say what is too large.

        Args:
            limit: the most bytes of all slices.
        """
        super().__init__(
            f"the results of the set have more than {limit:,} bytes, a seventh of the memory beyond 96 MiB of the function "
            "that merges them; give it more (`memory`), or let slices return references to data"
        )


def collected(stored: Iterable[tuple[int, bytes]]) -> dict[int, Raw] | ErrorInfo:
    """The payloads of stored slices, or why this function cannot hold them."""
    try:
        return {index: decode(body).payload for index, body in stored if index != ORIGIN}
    except SetTooLargeError as error:
        return ErrorInfo(type="ResultTooLarge", message=str(error))


def origin_delivery(origin: Hop, decision: Decision, items: Mapping[int, Raw] | ErrorInfo) -> Delivery:
    """Build the only envelope that leaves a set.

    Args:
        origin: slice 0 as it was stored, at the fan-in actor.
        items: the payloads of the stored slices 1 and up, or why they cannot be merged; needed for a merge only.
    """
    now = parse_time(decision.at)
    if isinstance(items, ErrorInfo):
        return _end(origin, status.failed(origin.status, reason="RuntimeError", now=decision.at, error=items))
    if decision.how == "merged":
        return _merge(origin, decision, items, now)
    if decision.how == states.CANCELED:
        final_status = status.ended(origin.status, phase=states.CANCELED, reason="Canceled", now=decision.at)
    else:
        reason: Reason = "FanInTimeout" if decision.reason == "FanInTimeout" else "SliceFailed"
        final_status = status.failed(origin.status, reason=reason, now=decision.at, error=decision.error)
    return _end(origin, final_status)


def _merge(origin: Hop, decision: Decision, items: Mapping[int, Raw], now: datetime) -> Delivery:
    """Insert the results of slices 1 to N into slice 0, in numeric order, as a list or by the names of branches; route it on."""
    missing = frozenset(decision.missing)
    try:
        header = _header_of(origin.envelope)
        results = (NULL if index in missing else items[index] for index in range(1, header.slice_count))
        joined = list(results) if header.branches is None else dict(zip(header.branches, results, strict=True))
        payload = insert(origin.envelope.payload, header.aggregation_key, Raw(msgspec.json.encode(joined)))
    except ValueError as error:
        info = ErrorInfo(type="ValueError", message=f"the results cannot be put into the payload: {error}")
        return _end(origin, status.failed(origin.status, reason="RuntimeError", now=decision.at, error=info))
    frame = Frame(payload, headers={headers.FAN_IN: enclosing_header(origin.envelope)})
    try:
        return outcome.frame(origin, frame, 0, now=now)
    except TargetError as error:
        outer_hop = Hop.of(_leave_set(origin.envelope), origin.actor, origin.spec, origin.mesh, origin.arrival)
        return outcome.mismatch(outer_hop, error, now=now)


def _header_of(envelope: Envelope) -> SliceHeader:
    """The header of a stored slice; a ValueError says what is wrong with it."""
    header = slice_header(envelope)
    if header is None:
        raise ValueError(f"envelope {envelope.id} is stored as a slice, but has no header {headers.FAN_IN}")
    return header


def _end(origin: Hop, final_status: status.Status) -> Delivery:
    """End slice 0 at x-sink with its payload as received and its route not shifted; x-sink notifies an enclosing set."""
    return Delivery(names.SINK, encode(replace(_leave_set(origin.envelope), status=final_status)), "sink")


def _leave_set(envelope: Envelope) -> Envelope:
    """The envelope with the slice header of the enclosing set, or with none."""
    return envelope.with_headers({headers.FAN_IN: enclosing_header(envelope)})


class SetRepeat(msgspec.Struct, frozen=True, kw_only=True):
    """The fan-out that a new set repeats.

    Attributes:
        origin_id: the envelope that was fanned out, in this `generation`.
        position: the position of the hop that fanned out, in the route of the old and of the new origin.
        keeps_results: whether the stored results of the old set are copied; otherwise every slice runs again.
    """

    origin_id: str
    generation: int
    position: int
    keeps_results: bool = False

    @property
    def set_id(self) -> str:
        """The id of the old set."""
        return ids.set_id(self.origin_id, self.generation, self.position)


def is_repeat(envelope: Envelope) -> bool:
    """Whether an envelope asks its fan-in actor to repeat a fan-out."""
    return headers.SET_REPEAT in envelope.headers


def fan_out_position(envelope: Envelope) -> int:
    """The position of the hop whose fan-out has sent slice 0 to the fan-in actor of this envelope."""
    return envelope.route.position - 1


def new_set_id(envelope: Envelope) -> str:
    """The id of the set that an envelope at its fan-in actor opens again."""
    return ids.set_id(envelope.id, envelope.generation, fan_out_position(envelope))


def record_id(envelope: Envelope) -> str:
    """The id under which the gateway records what the envelope repeats; a redrive, in a later generation, keeps it."""
    return ids.set_id(envelope.id, 0, fan_out_position(envelope))


def fan_out_hop(hop: Hop) -> Hop:
    """The hop that fans out again: the envelope one position earlier, before its frames leave."""
    route = hop.envelope.route
    if not route.prev:
        raise TargetError(f"{hop.envelope.id} cannot repeat a fan-out: no actor comes before {hop.actor!r}")
    before = replace(hop.envelope, route=Route(route.prev[:-1], route.prev[-1], ()))
    return replace(hop, envelope=before.with_headers({headers.SET_REPEAT: None}))


def kept_hop(envelope: Envelope, repeat: SetRepeat) -> Envelope:
    """An envelope that names the hop of the kept frames: its id, generation and position."""
    route = Route(envelope.route.prev[: repeat.position], "", ())
    generation = repeat.generation or None
    return replace(envelope, id=repeat.origin_id, route=route).with_headers({headers.GENERATION: generation})


def repeated_frames(frames: list[Frame], set_id: str, origin_id: str) -> list[Frame]:
    """The frames of a fan-out, as slices of a new set.

    Raises:
        TargetError: they are not the slices of a fan-out.
    """
    return [_repeated(frame, set_id, origin_id) for frame in frames]


def _repeated(frame: Frame, set_id: str, origin_id: str) -> Frame:
    try:
        header = decode_header(frame.headers.get(headers.FAN_IN))
    except ValueError as error:
        raise TargetError(str(error)) from None
    if header is None:
        raise TargetError("the kept frames are not those of a fan-out")
    changed = replace(header, set_id=set_id, origin_id=origin_id)
    return replace(frame, headers={**frame.headers, headers.FAN_IN: Raw(msgspec.json.encode(changed))})
