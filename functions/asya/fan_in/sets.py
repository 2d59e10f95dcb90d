"""What becomes of a set of slices: waited for, merged, or ended (`protocol §9`).

Every decision is made from what is known of the set alone, so that any message about it (a slice, an end, a look at the
clock), in any order and any number of times, comes to the same result. A decision is written down before anything follows from
it; what leaves is made from the decision and the stored slices alone, so that it is the same bytes each time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.messaging.delivery import Delivery
from asya.messaging.hop import Hop
from asya.messaging.targets import UnknownTargetError
from asya.protocol import headers, names, status
from asya.protocol.codec import encode
from asya.protocol.envelope import NULL, Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.frame import Frame
from asya.protocol.insertion import insert
from asya.protocol.mesh_table import FanIn
from asya.protocol.slices import SliceHeader, slice_header
from asya.protocol.status import Reason
from asya.protocol.times import format_time, parse_time
from asya.sidecar import outcome

ORIGIN = 0
_INDICES_SHOWN = 10


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What becomes of a set; made once.

    Attributes:
        how: `merged`, `failed` and `canceled` say how the origin leaves; `gone`: it has ended elsewhere, nothing leaves.
        at: when it was decided (RFC 3339); the status of what leaves bears this time.
        missing: items whose place in the merged list is null.
        reason, error: of the failure.
    """

    how: Literal["merged", "failed", "canceled", "gone"]
    at: str
    missing: tuple[int, ...] = ()
    reason: str = ""
    error: ErrorInfo | None = None


@dataclass(frozen=True, slots=True)
class SetState:
    """What is known of a set.

    Attributes:
        slice_count: slices of the set, the origin (slice 0) included.
        arrived: the slices that are stored.
        lost: slices that ended without a result. One that arrives after all counts as arrived.
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

    @property
    def missing(self) -> frozenset[int]:
        """The items that are not stored."""
        return frozenset(range(1, self.slice_count)) - self.arrived


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet."""


@dataclass(frozen=True, slots=True)
class Merge:
    """Put together what is there; `missing` items are null."""

    missing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Fail:
    """The set cannot be completed.

    Attributes:
        message: what is wrong with the set.
        slice_index: the lost slice whose error the origin ends with, if it is for that.
    """

    reason: Reason
    message: str
    slice_index: int | None = None


Verdict = Wait | Merge | Fail


def judge(state: SetState, rule: FanIn, *, now: datetime) -> Verdict:
    """What to do with a set that nothing has been decided about.

    A failure may be decided before slice 0 is there; it leaves when that comes.
    """
    missing, lost = state.missing, state.lost & state.missing
    if state.has_origin and not missing:
        return Merge()
    if lost and not _bearable(len(lost), state, rule):
        return _slice_failed(lost, state)
    if now < state.due_at:
        if state.has_origin and lost == missing:
            return Merge(tuple(sorted(missing)))
        return Wait()
    if state.has_origin and _bearable(len(missing), state, rule):
        return Merge(tuple(sorted(missing)))
    return _out_of_time(state)


def _bearable(absent: int, state: SetState, rule: FanIn) -> bool:
    """Whether the set may be merged without so many of its items."""
    if rule.on_failure == "fail":
        return absent == 0
    return state.slice_count - 1 - absent >= (rule.quorum or 0)


def _slice_failed(lost: frozenset[int], state: SetState) -> Fail:
    first = min(lost)
    more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    return Fail("SliceFailed", f"slice {first}{more} of {state.slice_count} ended without a result", first)


def _out_of_time(state: SetState) -> Fail:
    absent = sorted(state.missing | (frozenset() if state.has_origin else {ORIGIN}))
    shown = ", ".join(map(str, absent[:_INDICES_SHOWN])) + (", …" if len(absent) > _INDICES_SHOWN else "")
    return Fail("FanInTimeout", f"{len(absent)} of {state.slice_count} slices did not arrive in time: {shown}")


def decided(verdict: Merge | Fail, slice_error: ErrorInfo | None, *, now: datetime) -> Decision:
    """The decision that a verdict comes to.

    Args:
        slice_error: what the lost slice ended with, if it is known.
    """
    at = format_time(now)
    if isinstance(verdict, Merge):
        return Decision(how="merged", at=at, missing=verdict.missing)
    error = slice_error or ErrorInfo(type=verdict.reason, message=verdict.message)
    return Decision(how="failed", at=at, reason=verdict.reason, error=error)


def leaving(origin: Hop, decision: Decision, items: Mapping[int, Raw]) -> Delivery:
    """The one envelope that leaves a set.

    Args:
        origin: slice 0 as it was stored, at the fan-in actor.
        items: the payloads of slices 1 and up that are stored; needed for a merge only.
    """
    now = parse_time(decision.at)
    if decision.how == "merged":
        return _merged(origin, decision, items, now)
    if decision.how == "canceled":
        ended = status.ended(origin.status, phase="canceled", reason="Canceled", now=decision.at)
    else:
        reason: Reason = "FanInTimeout" if decision.reason == "FanInTimeout" else "SliceFailed"
        ended = status.failed(origin.status, reason=reason, now=decision.at, error=decision.error)
    return _ending(origin, ended)


def _merged(origin: Hop, decision: Decision, items: Mapping[int, Raw], now: datetime) -> Delivery:
    """Slice 0 with the list of 1..N, in numeric order, at the aggregation key, along slice 0's route."""
    header = slice_header(origin.envelope)
    if header is None:
        raise ValueError(f"envelope {origin.envelope.id} was stored as a slice and is none")
    left_out = frozenset(decision.missing)
    results = (bytes(NULL if index in left_out else items[index]) for index in range(1, header.slice_count))
    try:
        payload = insert(origin.envelope.payload, header.aggregation_key, Raw(b"[" + b",".join(results) + b"]"))
    except ValueError as error:
        info = ErrorInfo(type="ValueError", message=f"the results cannot be put into the payload: {error}")
        return _ending(origin, status.failed(origin.status, reason="RuntimeError", now=decision.at, error=info))
    frame = Frame(payload, headers={headers.FAN_IN: _outer(header)})
    try:
        return outcome.frame(origin, frame, 0, now=now)
    except UnknownTargetError as error:
        restored = Hop.of(_restored(origin.envelope), origin.actor, origin.spec, origin.mesh, origin.arrival)
        return outcome.mismatch(restored, error, now=now)


def _ending(origin: Hop, ended: status.Status) -> Delivery:
    """Slice 0 ends at x-sink, its payload as it came and its route un-shifted; an enclosing set learns of it from there."""
    return Delivery(names.SINK, encode(replace(_restored(origin.envelope), status=ended)), "sink")


def _restored(envelope: Envelope) -> Envelope:
    """The envelope outside of this set: a slice of the enclosing one, or none."""
    header = slice_header(envelope)
    return envelope.with_headers({headers.FAN_IN: _outer(header) if header else None})


def _outer(header: SliceHeader) -> Raw | None:
    return header.outer if isinstance(header.outer, Raw) else None
