"""Slices, sets, and the messages about sets (`protocol §9`)."""

import hashlib
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.protocol import headers, ids, names, states
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.json_pointer import check_pointer
from asya.protocol.states import EndStatus
from asya.protocol.strict_json import escape

TOO_MANY_SLICES = f"slice_count is over {headers.MAX_SLICES}, the slices of the largest fan-out"
TOO_DEEP = f"outer has more than {headers.MAX_ENCLOSING_SETS} enclosing sets"


def _check_place(index: int, count: int) -> None:
    """Check the place of a slice in its set. The cost of a set grows with its count, which a sender may forge."""
    if count > headers.MAX_SLICES:
        raise ValueError(TOO_MANY_SLICES)
    if not 0 <= index < count:
        raise ValueError(f"slice_index {index} is not within slice_count {count}")


_PLACE_DIGITS = 32


class SliceHeader(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The header `x-asya-fan-in` of one slice.

    Attributes:
        actor: the fan-in actor that merges the set.
        set_id: the id of the set, derived from the origin's id, generation and position.
        origin_id: the id of the fanned-out envelope, which is the id of the merged envelope too.
        slice_index: 0 for the origin, 1 and up for the items.
        slice_count: the number of slices, including slice 0.
        aggregation_key: JSON pointer to the results in the origin's payload.
        branches: the names of the slices 1 and up, if the results are an object; None if they are a list.
        outer: the header of an enclosing set; the origin gets it back when it leaves this set.
    """

    actor: str
    set_id: str
    origin_id: str
    slice_index: int
    slice_count: int
    aggregation_key: str
    branches: tuple[str, ...] | None = None
    outer: Raw | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        """Reject an invalid header, both when it is decoded and when it is made."""
        names.check_label(self.actor, "fan-in actor")
        for name in ("set_id", "origin_id"):
            if (problem := ids.problem_of(getattr(self, name))) is not None:
                raise ValueError(f"{name} {problem}")
        _check_place(self.slice_index, self.slice_count)
        check_pointer(self.aggregation_key)
        if self.branches is not None and len(names.check_branches(self.branches)) != self.slice_count - 1:
            raise ValueError(f"branches has {len(self.branches)} names for a slice_count of {self.slice_count}")

    @property
    def branch(self) -> str | None:
        """The name of this slice; None for the origin, and in a set whose results are a list."""
        return self.branches[self.slice_index - 1] if self.branches is not None and self.slice_index else None

    @property
    def place(self) -> str:
        """What a key says of the place of a slice: all of its header but the enclosing set (`protocol §4.keys.sets`)."""
        parts = (self.actor, self.set_id, self.origin_id, self.slice_index, self.slice_count, self.aggregation_key)
        named = parts if self.branches is None else (*parts, self.branches)
        return hashlib.sha256(msgspec.json.encode(named)).hexdigest()[:_PLACE_DIGITS]

    @property
    def enclosing(self) -> "SliceHeader | None":
        """The header of the enclosing set; None if this set is not nested or that header is malformed."""
        if self.outer is msgspec.UNSET:
            return None
        try:
            return _header_decoder.decode(self.outer)
        except msgspec.MsgspecError:
            return None


class _Nested(msgspec.Struct, frozen=True):
    """A slice header, reduced to the header of the enclosing set."""

    outer: Raw | msgspec.UnsetType = msgspec.UNSET


class SliceEnded(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="slice-ended"):
    """The message that a slice ended without a result; x-sink, x-sump and the DLQ function send it to the fan-in actor.

    Attributes:
        deadline_at: the deadline of the slice.
        slice_id, actor: the envelope that ended, and the actor at which it did; None if an unreadable message names neither.
        branch: the name of the slice; None in a set whose results are a list.
    """

    set_id: str
    slice_index: int
    slice_count: int
    phase: EndStatus
    reason: str
    error: ErrorInfo | None = None
    deadline_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    slice_id: str | None = None
    actor: str | None = None
    branch: str | None = None

    def __post_init__(self) -> None:
        """Reject an invalid message, both when it is decoded and when it is made."""
        _check_place(self.slice_index, self.slice_count)

    @property
    def named_error(self) -> ErrorInfo:
        """The error of the slice, with a message that names the slice and its actor first."""
        name = f" ({self.slice_id})" if self.slice_id else ""
        place = f" at {self.actor}" if self.actor else ""
        what = f"slice {self.slice_index}" if self.branch is None else f"branch {self.branch!r}"
        subject = f"{what}{name}{place}"
        if self.error is None:
            end = "was canceled" if self.phase == states.CANCELED else "ended without a result"
            return ErrorInfo(type="SliceFailed", message=f"{subject} {end}")
        return replace(self.error, message=f"{subject}: {self.error.message}")


class SetDue(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="set-due"):
    """The message that asks for a check of a set's deadline. A fan-in actor sends it to its own queue, delayed.

    Attributes:
        until: the expected time of the check in seconds since 1970. It tells the current message from stale ones. The
            sweep sends 0.
    """

    set_id: str
    until: float = 0.0


FanInMessage = SliceEnded | SetDue
_message_decoder: msgspec.json.Decoder[FanInMessage] = msgspec.json.Decoder(FanInMessage)
_header_decoder = msgspec.json.Decoder(SliceHeader)
_nested_decoder = msgspec.json.Decoder(_Nested)


def is_slice(envelope: Envelope) -> bool:
    """Whether the envelope has a slice header, valid or malformed."""
    return _is_present(envelope.headers.get(headers.FAN_IN))


def slice_header(envelope: Envelope) -> SliceHeader | None:
    """The slice header of an envelope; None if the envelope is not a slice.

    Raises:
        ValueError: the header is malformed.
    """
    return decode_header(envelope.headers.get(headers.FAN_IN))


def decode_header(raw: Raw | None) -> SliceHeader | None:
    """The value of the header `x-asya-fan-in`; None if the header is missing or null.

    Raises:
        ValueError: the header is malformed.
    """
    if raw is None or not _is_present(raw):
        return None
    try:
        header = _header_decoder.decode(raw)
    except msgspec.MsgspecError as error:
        raise ValueError(f"headers.{headers.FAN_IN}: {error}") from None
    if _is_too_deep(header):
        raise ValueError(f"headers.{headers.FAN_IN}: {TOO_DEEP}")
    return header


def _is_too_deep(header: SliceHeader) -> bool:
    """Whether a header has too many enclosing sets. The end of an origin costs a message for each of them."""
    outer = header.outer
    for _ in range(headers.MAX_ENCLOSING_SETS + 1):
        if outer is msgspec.UNSET:
            return False
        try:
            outer = _nested_decoder.decode(outer).outer
        except msgspec.MsgspecError:
            return False  # it encloses nothing
    return True


def own_place(envelope: Envelope) -> str:
    """The place of an envelope in the set of its parent, behind those that it has opened itself; empty if it has none."""
    try:
        header = slice_header(envelope)
    except ValueError:
        return ""  # it counts in no set
    while header is not None and header.slice_index == 0:
        header = header.enclosing
    return header.place if header is not None else ""


def enclosing_header(envelope: Envelope) -> Raw | None:
    """The slice header of the enclosing set as it was received; None if there is none.

    It is read from a malformed slice header too, so that an envelope can always leave its set.
    """
    try:
        outer = _nested_decoder.decode(envelope.headers.get(headers.FAN_IN, b"null")).outer
    except msgspec.MsgspecError:
        return None
    return outer if isinstance(outer, Raw) else None


def _is_present(raw: Raw | None) -> bool:
    return raw is not None and bytes(raw) != b"null"


def encode_message(message: FanInMessage) -> bytes:
    """The JSON of a message, ASCII only: SQS refuses some characters, which an id or an error may have."""
    return escape(msgspec.json.encode(message))


def decode_message(body: bytes) -> FanInMessage | None:
    """A message about a set; None for every other message, such as an envelope."""
    if b'"type"' not in body:
        return None
    try:
        return _message_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
