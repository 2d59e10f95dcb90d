"""What a hop may give where slices are concerned, and who is told when a slice ends early (`protocol §9`)."""

from collections.abc import Sequence

from asya.messaging.delivery import Delivery
from asya.messaging.hop import Hop
from asya.messaging.targets import UnknownTargetError, overrides
from asya.protocol import headers
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.frame import Frame
from asya.protocol.mesh_table import MeshTable
from asya.protocol.slices import SliceEnded, SliceHeader, decode_header, encode_message, is_slice, slice_header


class SecondFrameError(ValueError):
    """A slice's actor gave more than one frame; a set has room for one result of each slice."""

    def __init__(self, actor: str) -> None:
        super().__init__(
            f"{actor!r} gave more than one frame for a slice, which has room for one result; yield one, "
            "or fan_out to open a set of its own"
        )

    @property
    def error(self) -> ErrorInfo:
        """The processing error that the hop fails with."""
        return ErrorInfo(type="processing_error", message=str(self))


def must_leave_together(hop: Hop, first: Frame) -> bool:
    """Whether a hop's frames leave together or not at all: of a slice, and of what opens a set."""
    return first.opens_set or is_slice(hop.envelope)


def check_frames(hop: Hop, frames: Sequence[Frame]) -> None:
    """Whether these may leave a hop, as far as sets are concerned; the first two frames are enough to tell.

    Raises:
        SecondFrameError: a slice, and more frames than one.
        UnknownTargetError: a set that is opened for an actor that is no fan-in actor.
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
        raise UnknownTargetError(str(error)) from None
    if header is not None and fan_in_actor_of(hop.envelope, header, hop.mesh) is None:
        raise UnknownTargetError(f"actor {header.actor!r} is no fan-in actor of the mesh {hop.mesh.namespace!r}")


def require_slice_header(hop: Hop) -> SliceHeader:
    """The header of a slice that came to the fan-in actor of its set.

    Raises:
        UnknownTargetError: if it is no slice, or one of a set that is put together elsewhere.
    """
    try:
        header = slice_header(hop.envelope)
    except ValueError as error:
        raise UnknownTargetError(str(error)) from None
    if header is None:
        raise UnknownTargetError(
            f"{hop.actor!r} puts slices together, and this envelope is none (no header {headers.FAN_IN}): "
            "only what a handler gave by fan_out may come here"
        )
    if fan_in_actor_of(hop.envelope, header, hop.mesh) != hop.actor:
        raise UnknownTargetError(f"the slice belongs to a set of {header.actor!r}, but came to {hop.actor!r}")
    return header


def fan_in_actor_of(envelope: Envelope, header: SliceHeader, mesh: MeshTable) -> str | None:
    """The actor whose queue takes what is to be told about a set; None if there is no such fan-in actor."""
    actor = overrides(envelope).get(header.actor, header.actor)
    spec = mesh.actors.get(actor)
    return actor if spec is not None and spec.kind == "fan_in" else None


def slice_end_deliveries(envelope: Envelope, mesh: MeshTable) -> tuple[Delivery, ...]:
    """What the fan-in actors are to be told when an envelope has ended elsewhere.

    A slice tells its own set. An origin tells the set it had opened, and, being a slice of the enclosing set itself, that one
    too. What only rests (paused) tells nobody.
    """
    phase = envelope.status.phase if envelope.status else None
    if phase not in ("succeeded", "failed", "canceled"):
        return ()
    status = envelope.status
    try:
        header = slice_header(envelope)
    except ValueError:
        return ()
    deliveries = []
    while header is not None:
        queue = fan_in_actor_of(envelope, header, mesh)
        if queue is not None:
            told = SliceEnded(
                set_id=header.set_id,
                slice_index=header.slice_index,
                slice_count=header.slice_count,
                phase=phase,
                reason=(status.reason if status else None) or phase,
                error=status.error if status else None,
            )
            deliveries.append(Delivery(queue, encode_message(told), "slice-ended"))
        header = header.enclosing if header.slice_index == 0 else None
    return tuple(deliveries)
