"""Slices and sets: what a fan-out hands out and a fan-in puts together again (`protocol §9`)."""

from typing import Literal

import msgspec
from msgspec import Raw

from asya.protocol import headers, ids, names
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.pointer import check_pointer

SliceEnd = Literal["succeeded", "failed", "canceled"]


class SliceHeader(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The header `x-asya-fan-in` of one slice.

    Attributes:
        actor: the fan-in actor that puts the set together.
        set_id: names the set; made from the origin's id, generation and position.
        origin_id: the envelope that was fanned out, and that the merged one is again.
        slice_index: 0 is the origin itself, 1 and up are the items.
        slice_count: all slices of the set, slice 0 included.
        aggregation_key: JSON pointer to where the list of the items' results goes in the origin's payload.
        outer: the header of an enclosing set, restored when the origin leaves this one.
    """

    actor: str
    set_id: str
    origin_id: str
    slice_index: int
    slice_count: int
    aggregation_key: str
    outer: Raw | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        """A header that cannot be right is refused, when it is read as well as when it is made."""
        names.check_label(self.actor, "fan-in actor")
        for name in ("set_id", "origin_id"):
            if not ids.is_usable(getattr(self, name)):
                raise ValueError(f"{name} must have 1 to {ids.ID_LIMIT} bytes")
        if not 0 <= self.slice_index < self.slice_count:
            raise ValueError(f"slice_index {self.slice_index} is not within slice_count {self.slice_count}")
        check_pointer(self.aggregation_key)

    @property
    def enclosing(self) -> "SliceHeader | None":
        """The header of the enclosing set, if this set is nested and that header can be read."""
        if self.outer is msgspec.UNSET:
            return None
        try:
            return _header_decoder.decode(self.outer)
        except msgspec.MsgspecError:
            return None


class SliceEnded(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="slice-ended"):
    """A slice ended without a result; told to the fan-in actor by x-sink, x-sump and the DLQ function."""

    set_id: str
    slice_index: int
    slice_count: int
    phase: SliceEnd
    reason: str
    error: ErrorInfo | None = None


class SetDue(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="set-due"):
    """A look at whether a set's time is up; a fan-in actor sends it to itself, delayed.

    Attributes:
        until: by when this look was expected (seconds since 1970): tells the one in charge from strays. 0 from the sweep.
    """

    set_id: str
    until: float = 0.0


FanInMessage = SliceEnded | SetDue
_message_decoder: msgspec.json.Decoder[FanInMessage] = msgspec.json.Decoder(FanInMessage)
_header_decoder = msgspec.json.Decoder(SliceHeader)


def is_slice(envelope: Envelope) -> bool:
    """Whether the envelope is a slice of a set, be its header right or wrong."""
    return _is_there(envelope.headers.get(headers.FAN_IN))


def slice_header(envelope: Envelope) -> SliceHeader | None:
    """The envelope's slice header; None if it is no slice.

    Raises:
        ValueError: if there is a header that is malformed; says what is wrong with it.
    """
    return decode_header(envelope.headers.get(headers.FAN_IN))


def decode_header(raw: Raw | None) -> SliceHeader | None:
    """The value of a header `x-asya-fan-in`; None if there is none.

    Raises: as `slice_header` does.
    """
    if raw is None or not _is_there(raw):
        return None
    try:
        return _header_decoder.decode(raw)
    except msgspec.MsgspecError as error:
        raise ValueError(f"headers.{headers.FAN_IN}: {error}") from None


def _is_there(raw: Raw | None) -> bool:
    return raw is not None and bytes(raw) != b"null"


def encode_message(message: FanInMessage) -> bytes:
    """The message's bytes, ASCII unless an error's text is not."""
    return msgspec.json.encode(message)


def decode_message(body: bytes) -> FanInMessage | None:
    """A message about a set; None for everything else, envelopes above all."""
    if b'"type"' not in body:
        return None
    try:
        return _message_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
