"""The messages about lanes on the queue `x-triggers` (`protocol §16.lane.repair`)."""

import msgspec

from asya.capabilities.triggers.lanes import LaneKey, Start


class LaneCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something may be due in a lane.

    Attributes:
        closes: the id of the task that the open window starts, if the message was sent to close it.
    """

    lane: str
    trigger: str
    closes: str | None = None

    @property
    def key(self) -> LaneKey:
        """The lane."""
        return LaneKey(self.trigger, self.lane)


class StartAgain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A start of a lane that has failed: a dead letter, which starts again if it is redriven."""

    start: Start
    lane: str
    trigger: str

    @property
    def key(self) -> LaneKey:
        """The lane."""
        return LaneKey(self.trigger, self.lane)


_check_decoder = msgspec.json.Decoder(LaneCheck)
_again_decoder = msgspec.json.Decoder(StartAgain)


def encode_check(key: LaneKey, closes: str | None = None) -> bytes:
    """The message that has a lane looked at."""
    return msgspec.json.encode(LaneCheck(lane=key.digest, trigger=key.trigger, closes=closes))


def encode_again(key: LaneKey, start: Start) -> bytes:
    """The dead letter of a start that has failed."""
    return msgspec.json.encode(StartAgain(start=start, lane=key.digest, trigger=key.trigger))


def read_lane_message(body: bytes) -> LaneCheck | StartAgain | None:
    """Read a message about a lane; None if it is none."""
    for decoder in (_check_decoder, _again_decoder):
        try:
            return decoder.decode(body)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            continue
    return None
