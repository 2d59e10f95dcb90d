"""Decodes and encodes envelopes (`protocol §1`).

A plain envelope takes one fast pass with a struct of the known keys. Unknown keys, nulls, other forms and mistakes take
a second, careful pass, which names the field in its errors.
"""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from asya.protocol import ids, salvage
from asya.protocol.envelope import NO_UNKNOWN_MEMBERS, NULL, Envelope, Route, UnknownMembers
from asya.protocol.headers import PAYLOAD_REF
from asya.protocol.status import Status
from asya.protocol.strict_json import escape
from asya.protocol.times import parse_time

T = TypeVar("T")
Members = dict[str, Raw]
"""The members of a JSON object."""
Upgrade = Callable[[str, Members], Members]
"""Brings the members of a message, with its SQS message id, into the form of an envelope; raises `ParseError`."""


class ParseError(ValueError):
    """A message is not a valid envelope. `envelope_id` is the id of the message, if that id is usable."""

    def __init__(self, problem: str, envelope_id: str | None = None) -> None:
        super().__init__(f"Failed to parse message: {problem}")
        self.envelope_id = envelope_id


class _Times(msgspec.Struct, array_like=True):
    """The times of a status. One conversion of all three takes a third of the time of three conversions."""

    created_at: datetime | None
    updated_at: datetime | None
    deadline_at: datetime | None


_KNOWN_KEYS = frozenset({"id", "parent_id", "route", "headers", "status", "payload"})
_KNOWN_STATUS_KEYS = frozenset(Status.__struct_fields__)
_NO_STATUS = Status()
_REPLACED = "\ufffd"  # stands for bytes that are not UTF-8

_encoder = msgspec.json.Encoder()
_envelope_decoder = msgspec.json.Decoder(Envelope)
_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_optional_object_decoder: Decoder[dict[str, Raw] | None] = Decoder(dict[str, Raw] | None)
_text_decoder = Decoder(str)
_optional_text_decoder: Decoder[str | None] = Decoder(str | None)
_names_decoder = Decoder(tuple[str, ...])
_status_decoder = Decoder(Status)
_value_decoder: Decoder[object] = Decoder()


def decode(body: bytes, upgrade: Upgrade | None = None, *, message_id: str = "") -> Envelope:
    """Decode the body of a message.

    Args:
        body: the bytes on the queue.
        upgrade: upgrades messages of other forms, which those who receive messages accept.
        message_id: the SQS message id, for `upgrade`.

    Raises:
        ParseError: the message is not a valid envelope; the error names the field.
    """
    try:
        if not body.isascii():
            body.decode("utf-8")
        envelope = _envelope_decoder.decode(body)
        if _is_plain(envelope):
            return envelope
    except UnicodeDecodeError as error:
        raise ParseError(f"the message is not UTF-8 (byte {error.start})", _salvaged_id(body)) from None
    except (msgspec.MsgspecError, RecursionError):
        pass  # the careful pass either accepts the message or names the field at fault
    return _decode_carefully(body, upgrade, message_id)


def _is_plain(envelope: Envelope) -> bool:
    """Whether the envelope needs no careful pass: its id is usable, and no empty value counts as absent.

    All headers are decoded once here, so later readers need not handle malformed ones.

    Raises:
        msgspec.MsgspecError, RecursionError: a time or a header is malformed.
    """
    for raw in envelope.headers.values():
        _value_decoder.decode(raw)
    status = envelope.status
    if status is not None and not _has_plain_times(status):
        return False
    return ids.is_usable(envelope.id) and envelope.parent_id != "" and status != _NO_STATUS


def _has_plain_times(status: Status) -> bool:
    """Whether all times of a status have the form that the mesh writes; the careful pass decides on other forms.

    Raises:
        msgspec.ValidationError: a text is not a time.
    """
    texts = (status.created_at, status.updated_at, status.deadline_at)
    msgspec.convert(texts, _Times)
    for text in texts:
        if text is None:
            continue
        if text[10] != "T" or text[-1] != "Z":
            return False
    return True


def readable_headers(body: bytes) -> dict[str, Raw]:
    """The headers of a message that is not a valid envelope, as far as they can be read (`protocol §5.1`).

    The payload reference is left out: it may be the mistake, and its payload is not passed on.
    """
    try:
        body.decode("utf-8")
        headers = _optional_object_decoder.decode(_object_decoder.decode(body).get("headers", NULL)) or {}
    except msgspec.ValidationError:
        return {}
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError):
        text = salvage.members(body.decode("utf-8", "replace")).get("headers", "")
        headers = {name: Raw(value.encode()) for name, value in salvage.members(text).items() if _REPLACED not in value}
    return {name: raw for name, raw in headers.items() if name != PAYLOAD_REF and _is_readable(raw)}


def _is_readable(raw: Raw) -> bool:
    try:
        _value_decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _salvaged_id(body: bytes) -> str | None:
    """The id of a message that is no valid JSON, if it is usable (`protocol §5.1`)."""
    value = salvage.members(body.decode("utf-8", "replace")).get("id", "")
    try:
        envelope_id = _text_decoder.decode(value)
    except msgspec.MsgspecError:
        return None
    return envelope_id if ids.is_usable(envelope_id) and _REPLACED not in envelope_id else None


def encode(envelope: Envelope) -> bytes:
    """Encode an envelope. Payload and header bytes stay unchanged; everything else is ASCII (`protocol §1`)."""
    if envelope.extra is NO_UNKNOWN_MEMBERS and envelope.status_extra is NO_UNKNOWN_MEMBERS:
        text = _encoder.encode(envelope)
        if text.isascii():
            return text
    return _encode_carefully(envelope)


def _encode_carefully(envelope: Envelope) -> bytes:
    members: dict[str, bytes] = {"id": _ascii_json(envelope.id)}
    if envelope.parent_id:
        members["parent_id"] = _ascii_json(envelope.parent_id)
    members["route"] = _ascii_json(envelope.route)
    if envelope.headers:
        members["headers"] = _object({name: bytes(raw) for name, raw in envelope.headers.items()})
    status = _status_members(envelope)
    if status:
        members["status"] = _object(status)
    members["payload"] = bytes(envelope.payload)
    members |= {name: bytes(raw) for name, raw in envelope.extra.items()}
    return _object(members)


def _status_members(envelope: Envelope) -> dict[str, bytes]:
    known = _object_decoder.decode(_encoder.encode(envelope.status)) if envelope.status is not None else {}
    return {name: escape(bytes(raw)) for name, raw in known.items()} | {
        name: bytes(raw) for name, raw in envelope.status_extra.items()
    }


def _object(members: dict[str, bytes]) -> bytes:
    return b"{" + b",".join(_ascii_json(name) + b":" + value for name, value in members.items()) + b"}"


def _ascii_json(value: object) -> bytes:
    return escape(_encoder.encode(value))


def _decode_carefully(body: bytes, upgrade: Upgrade | None, message_id: str) -> Envelope:
    try:
        members = _object_decoder.decode(body)
    except RecursionError:
        raise ParseError("the message is nested too deeply", _salvaged_id(body)) from None
    except msgspec.ValidationError:
        raise ParseError("the message is no JSON object") from None
    except msgspec.DecodeError as error:
        raise ParseError(f"the message is no JSON: {error}", _salvaged_id(body)) from None

    if upgrade is not None:
        members = upgrade(message_id, members)
    envelope_id = id_of(members)
    route_raw = members.get("route")
    if route_raw is None:
        raise ParseError("route is missing", envelope_id)
    if "payload" not in members:
        raise ParseError("payload is missing", envelope_id)
    status, status_extra = _status_of(members, envelope_id)
    headers: dict[str, Raw] | None = _field(members, "headers", _optional_object_decoder, envelope_id)
    envelope = Envelope(
        id=envelope_id,
        route=_route_of(route_raw, envelope_id),
        payload=members["payload"],
        parent_id=_field(members, "parent_id", _optional_text_decoder, envelope_id) or None,
        headers=headers or {},
        status=status,
        extra=_unknown_members(members, _KNOWN_KEYS),
        status_extra=status_extra,
    )
    _check_members(envelope.headers, "headers", envelope_id)
    _check_members(envelope.status_extra, "status", envelope_id)
    if status is not None:
        _check_times(status, envelope_id)
    return envelope


def id_of(members: Members, name: str = "id") -> str:
    """Return the id of a message.

    Args:
        name: the member that holds it.

    Raises:
        ParseError: it is missing, or no usable id.
    """
    if name not in members:
        raise ParseError(f"{name} is missing")
    try:
        value = msgspec.json.decode(members[name])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ParseError(f"{name}: {error}") from None
    if not isinstance(value, str):
        raise ParseError(f"{name} must be a string, not {_json_type(value)}")
    _check_id(value, name)
    return value


def _check_id(value: str, name: str) -> None:
    problem = ids.problem_of(value)
    if problem is not None:
        raise ParseError(f"{name} {problem}")


def _route_of(raw: Raw, envelope_id: str) -> Route:
    members = _decode_raw(raw, _object_decoder, "route", envelope_id)
    for name in ("prev", "curr", "next"):
        if name not in members:
            raise ParseError(f"route.{name} is missing", envelope_id)
    return Route(
        prev=_field(members, "prev", _names_decoder, envelope_id, "route."),
        curr=_field(members, "curr", _text_decoder, envelope_id, "route."),
        next=_field(members, "next", _names_decoder, envelope_id, "route."),
    )


def _unknown_members(members: dict[str, Raw], known: frozenset[str]) -> UnknownMembers:
    """The members of an object that are not in `known`."""
    unknown = UnknownMembers({name: raw for name, raw in members.items() if name not in known})
    return unknown or NO_UNKNOWN_MEMBERS


def _status_of(members: dict[str, Raw], envelope_id: str) -> tuple[Status | None, UnknownMembers]:
    status_members = _field(members, "status", _optional_object_decoder, envelope_id)
    if not status_members:
        return None, NO_UNKNOWN_MEMBERS
    extra = _unknown_members(status_members, _KNOWN_STATUS_KEYS)
    known = {name: bytes(raw) for name, raw in status_members.items() if name not in extra}
    status = _decode_raw(Raw(_object(known)), _status_decoder, "status", envelope_id)
    return status, extra


def _field(members: dict[str, Raw], name: str, decoder: Decoder[T], envelope_id: str, prefix: str = "") -> T:
    return _decode_raw(members.get(name, NULL), decoder, prefix + name, envelope_id)


def _decode_raw(raw: Raw, decoder: Decoder[T], path: str, envelope_id: str) -> T:
    try:
        return decoder.decode(raw)
    except RecursionError:
        raise ParseError(f"{path} is nested too deeply", envelope_id) from None
    except msgspec.MsgspecError as error:
        problem, _, location = str(error).partition(" - at `$")
        raise ParseError(f"{path}{location.rstrip('`')}: {problem}", envelope_id) from None


def _check_members(members: dict[str, Raw], parent: str, envelope_id: str) -> None:
    for name, raw in members.items():
        _decode_raw(raw, _value_decoder, f"{parent}.{name}", envelope_id)


def _check_times(status: Status, envelope_id: str) -> None:
    for name in ("deadline_at", "created_at", "updated_at"):
        text: str | None = getattr(status, name)
        if text is not None:
            try:
                parse_time(text)
            except ValueError as error:
                raise ParseError(f"status.{name}: {error}", envelope_id) from None


def _json_type(value: object) -> str:
    names = {
        dict: "an object",
        list: "an array",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)
