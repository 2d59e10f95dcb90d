"""Checks and bounds the slices of a hop, and notifies sets of lost ones (`protocol §9`, `§1.max_children`)."""

from collections.abc import Iterable, Iterator, Sequence

from asya.function.hop import Delivery, Hop
from asya.function.targets import TargetError, overrides
from asya.protocol import headers, states
from asya.protocol.envelope import Envelope, Frame
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import MeshTable
from asya.protocol.slices import SliceEnded, SliceHeader, decode_header, encode_message, is_slice, slice_header
from asya.protocol.times import parse_time

REASON = "MaxChildren"


class TooManyChildrenError(ValueError):
    """A hop gives more children than the mesh allows.

    Args:
        actor: the actor of the hop.
        given: the children that it gave, as text.
        limit: `max_children` of the mesh.
        needed: a value of `max_children` that allows them, or at least more of them.
    """

    def __init__(self, actor: str, given: str, limit: int, needed: int) -> None:
        super().__init__(
            f"actor {actor!r} gave {given} in one hop; this mesh allows {limit}; "
            f"to allow more, write in the mesh file: max_children: {needed}"
        )

    @property
    def error(self) -> ErrorInfo:
        """The error that the hop fails with."""
        return ErrorInfo(type=REASON, message=str(self))


def bounded(hop: Hop, frames: Iterable[Frame]) -> Iterator[Frame]:
    """The frames of a hop, as they come.

    Raises:
        TooManyChildrenError: at the first frame beyond the limit. How many would follow, nobody knows.
    """
    limit = hop.mesh.max_children
    for index, frame in enumerate(frames):
        if index > limit:
            raise TooManyChildrenError(hop.actor, f"more than {limit} children", limit, 2 * limit)
        yield frame


def check_count(hop: Hop, frames: int) -> None:
    """Check the number of frames of a hop: frame 0 is no child.

    Raises:
        TooManyChildrenError: they are too many.
    """
    children, limit = frames - 1, hop.mesh.max_children
    if children > limit:
        raise TooManyChildrenError(hop.actor, f"{children} children", limit, children)


class SecondFrameError(ValueError):
    """A slice's actor gave more than one frame; a set takes one result for each slice."""

    def __init__(self, actor: str) -> None:
        super().__init__(
            f"{actor!r} gave more than one frame for a slice, but a slice has one result; "
            "yield one frame, or open a nested set with fan_out or branches"
        )

    @property
    def error(self) -> ErrorInfo:
        """The processing error that the hop fails with."""
        return ErrorInfo(type="processing_error", message=str(self))


def must_leave_together(hop: Hop, first: Frame) -> bool:
    """Whether a hop's frames must leave together: those of a slice, and those that open a set."""
    return first.opens_set or is_slice(hop.envelope)


def check_frames(hop: Hop, frames: Sequence[Frame]) -> None:
    """Check that these frames may leave a hop under the rules of sets; the first two frames decide.

    Raises:
        SecondFrameError: a slice has more than one frame.
        TargetError: the frames open a set for an actor that is not a fan-in actor.
    """
    if not frames:
        return
    if not frames[0].opens_set:
        if len(frames) > 1 and is_slice(hop.envelope):
            raise SecondFrameError(hop.actor)
        return
    try:
        header = decode_header(frames[0].headers[headers.FAN_IN])
    except ValueError as error:
        raise TargetError(str(error)) from None
    if header is not None and fan_in_actor_of(hop.envelope, header, hop.mesh) is None:
        raise TargetError(f"actor {header.actor!r} is not a fan-in actor of the mesh {hop.mesh.namespace!r}")


def require_slice_header(hop: Hop) -> SliceHeader:
    """The slice header of an envelope at the fan-in actor of its set.

    Raises:
        TargetError: the envelope is not a slice, or another actor merges its set.
    """
    try:
        header = slice_header(hop.envelope)
    except ValueError as error:
        raise TargetError(str(error)) from None
    if header is None:
        raise TargetError(
            f"{hop.actor!r} merges slices, but the envelope has no header {headers.FAN_IN}; "
            "send slices from fan_out or branches only"
        )
    if fan_in_actor_of(hop.envelope, header, hop.mesh) != hop.actor:
        raise TargetError(f"the slice belongs to a set of {header.actor!r}, but arrived at {hop.actor!r}")
    return header


def fan_in_actor_of(envelope: Envelope, header: SliceHeader, mesh: MeshTable) -> str | None:
    """The fan-in actor that merges a set, after route overrides; None if the mesh has no such fan-in actor."""
    actor = overrides(envelope).get(header.actor, header.actor)
    spec = mesh.actors.get(actor)
    return actor if spec is not None and spec.kind == "fan_in" else None


def slice_end_deliveries(mesh: MeshTable, *ended: Envelope) -> tuple[Delivery, ...]:
    """The `slice-ended` messages for an envelope that ended outside its set: one for each fan-in actor and set.

    A slice notifies its own set. An origin notifies the set that it opened, and its enclosing set if it is a slice there. A
    paused envelope notifies no set.

    Args:
        ended: runs of one end, which may belong to different sets. A set learns of the first.
    """
    deliveries: dict[tuple[str, str], Delivery] = {}
    for envelope in ended:
        deliveries = _slice_ends(envelope, mesh) | deliveries
    return tuple(deliveries.values())


def _slice_ends(envelope: Envelope, mesh: MeshTable) -> dict[tuple[str, str], Delivery]:
    """The messages of one envelope, by fan-in actor and set."""
    phase = envelope.status.phase if envelope.status else None
    if phase not in (states.SUCCEEDED, states.FAILED, states.CANCELED):
        return {}
    status = envelope.status
    try:
        header = slice_header(envelope)
    except ValueError:
        return {}
    deliveries: dict[tuple[str, str], Delivery] = {}
    while header is not None:
        actor = fan_in_actor_of(envelope, header, mesh)
        if actor is not None and (actor, header.set_id) not in deliveries:
            slice_end = SliceEnded(
                set_id=header.set_id,
                slice_index=header.slice_index,
                slice_count=header.slice_count,
                phase=phase,
                reason=(status.reason if status else None) or phase,
                error=status.error if status else None,
                deadline_at=parse_time(status.deadline_at) if status and status.deadline_at else None,
                slice_id=envelope.id,
                actor=envelope.route.curr or None,
                branch=header.branch,
            )
            deliveries[actor, header.set_id] = Delivery(actor, encode_message(slice_end), "slice-ended")
        header = header.enclosing if header.slice_index == 0 else None
    return deliveries
