"""Repeats a fan-out from its kept frames, for the replay of an origin whose set failed (`protocol §12.set`).

The gateway records where the frames are. It sends an envelope to the fan-in actor, which sends the slices again.
"""

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.function.hop import Hop
from asya.function.targets import TargetError
from asya.protocol import headers, ids
from asya.protocol.envelope import Envelope
from asya.protocol.frame import Frame
from asya.protocol.route import Route
from asya.protocol.slices import decode_header


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
