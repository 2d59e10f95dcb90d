"""The claim check: which messages are too large for SQS, and the form of the message instead (`protocol §4`).

That message has `payload` null and a reference in the header `x-asya-payload-ref`. No other module sees these.
`asya.function.aws.claim_check` stores the payloads in S3.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.function.hop import Delivery
from asya.function.sqs import is_sendable
from asya.protocol import headers, ids, names, states, status
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import NULL, UNKNOWN_HOP, Envelope
from asya.protocol.errors import MESSAGE_LIMIT, ErrorInfo, shortened
from asya.protocol.keys import INBOX_PREFIX, PAYLOADS_PREFIX
from asya.protocol.strict_json import escape
from asya.protocol.times import format_time, parse_time

# Bytes as they are sent, of each and together.
_LONGEST_MANAGED_HEADER = 4 * 1024
_MANAGED_HEADERS = 128 * 1024


class PayloadReference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reference to a payload in S3. `size` is in bytes, `sha256` in hexadecimal digits."""

    key: str
    size: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str


class EnvelopeTooLargeError(ValueError):
    """An envelope is too large even without its payload, headers and route."""


def needs_claim_check(body: bytes, limit: int) -> bool:
    """Whether SQS would refuse a message with this body, so that its payload has to be stored in S3.

    Args:
        limit: the maximum bytes of a message.
    """
    return len(body) > limit or not is_sendable(body)


def reference_to(payload: bytes, prefix: str, actor: str) -> PayloadReference:
    """The reference to a payload. The key derives from the content, so storing it is idempotent.

    Args:
        prefix: of all stored payloads of senders of a kind.
        actor: the actor whose queue gets the message. Its role alone may read the payload, beside those of the crew.
    """
    digest = hashlib.sha256(payload).hexdigest()
    return PayloadReference(f"{prefix}{actor}/{digest[:2]}/{digest}.json", len(payload), digest)


def with_reference(delivery: Delivery, envelope: Envelope, reference: PayloadReference, limit: int) -> Delivery:
    """The delivery with a reference instead of the payload, if need be with a shorter error; else it goes to x-sump.

    Args:
        limit: the maximum bytes of a message.

    Raises:
        EnvelopeTooLargeError: the envelope is too large even for x-sump.
    """
    body = _encode_with_reference(envelope, reference)
    if len(body) <= limit:
        return replace(delivery, body=body)
    problem = f"the envelope has {len(body)} bytes without its payload; {limit} at most can be sent"
    shorter = _with_short_error(envelope, problem)
    if shorter is not None:
        body = _encode_with_reference(shorter, reference)
        if len(body) <= limit:
            return replace(delivery, body=body)
    for reduced in reduced_for_sump(envelope, problem):
        body = _encode_with_reference(reduced, reference)
        if len(body) <= limit:
            return Delivery(names.SUMP, body, "sump")
    raise EnvelopeTooLargeError(f"envelope {envelope.id}: {problem}")


def read_reference(raw: Raw, envelope_id: str, reader: str | None) -> PayloadReference:
    """Read the reference in a header.

    Args:
        reader: the actor that reads it; None for x-sink, x-sump and the gateway, which get the references of all actors.

    Raises:
        ParseError: the reference is malformed, or its key is outside of the prefixes of payloads, or of another actor.
    """
    try:
        reference = msgspec.json.decode(raw, type=PayloadReference)
    except msgspec.MsgspecError as error:
        raise ParseError(f"headers.{headers.PAYLOAD_REF}: {error}", envelope_id) from None
    if not reference.key.startswith((PAYLOADS_PREFIX, INBOX_PREFIX)) or ".." in reference.key.split("/"):
        raise ParseError(
            f"headers.{headers.PAYLOAD_REF}: {reference.key!r} is outside of {PAYLOADS_PREFIX} and {INBOX_PREFIX}",
            envelope_id,
        )
    name = reference.key.partition("/")[2]
    if reader is not None and not name.startswith(f"{reader}/"):
        raise ParseError(f"headers.{headers.PAYLOAD_REF}: {reference.key!r} is not a payload for {reader}", envelope_id)
    return reference


def check_payload(payload: bytes, reference: PayloadReference, envelope_id: str) -> None:
    """Compare a stored payload with its reference.

    Raises:
        ParseError: its size or hash differs, or it is not JSON.
    """
    if len(payload) != reference.size or hashlib.sha256(payload).hexdigest() != reference.sha256:
        raise ParseError(
            f"payload object {reference.key!r} does not match the size or hash of its reference", envelope_id
        )
    try:
        payload.decode("utf-8")
        msgspec.json.decode(payload, type=Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"payload object {reference.key!r} is not JSON: {error}", envelope_id) from None


def reduced_for_sump(envelope: Envelope, problem: str) -> Iterator[Envelope]:
    """The reduced envelopes to try for x-sump: without unmanaged headers, then also without the route.

    Args:
        problem: the size of the envelope and the limit, for the error.
    """
    managed = {name: raw for name, raw in envelope.headers.items() if headers.is_managed(name)}
    yield replace(envelope, headers=managed, status=_failed(envelope, f"{problem}; its headers were dropped"))
    parent = envelope.parent_id
    yield replace(
        envelope,
        parent_id=parent if parent is not None and ids.is_usable(parent) else None,
        headers=_smallest(managed),
        route=UNKNOWN_HOP,
        status=_bounded(_failed(envelope, f"{problem}; its headers and its route were dropped")),
        status_extra={},
        extra={},
    )


def _with_short_error(envelope: Envelope, problem: str) -> Envelope | None:
    """The envelope with its error within the size of reports, which says so; None if the error is not the large part."""
    before = envelope.status
    if before is None or before.error is None:
        return None
    short = shortened(before.error)
    if short == before.error:
        return None
    note = f"… ({problem}; the error was cut)"
    error = replace(short, message=short.message[: MESSAGE_LIMIT - len(note)] + note)
    return replace(envelope, status=replace(before, error=error))


def _smallest(managed: Mapping[str, Raw]) -> dict[str, Raw]:
    """Managed headers that have room, the smallest first."""
    kept: dict[str, Raw] = {}
    left = _MANAGED_HEADERS
    for size, name in sorted((_sent_size(name, raw), name) for name, raw in managed.items()):
        left -= size
        if size > _LONGEST_MANAGED_HEADER or left < 0:
            break
        kept[name] = managed[name]
    return kept


def _sent_size(name: str, raw: Raw) -> int:
    return len(escape(msgspec.json.encode(name))) + len(escape(bytes(raw)))


def _failed(envelope: Envelope, message: str) -> status.Status:
    """The failed status; it keeps `updated_at`, which the hop stamped just before."""
    before = envelope.status or status.Status()
    error = ErrorInfo(type="EnvelopeTooLarge", message=message)
    return replace(before, phase=states.FAILED, reason="RuntimeError", error=error)


def _bounded(failed: status.Status) -> status.Status:
    """The status with texts of a bounded size: a sender may have written them."""
    times = {name: getattr(failed, name) for name in ("created_at", "updated_at", "deadline_at")}
    short = {name: format_time(parse_time(text)) if text else None for name, text in times.items()}
    return replace(failed, actor=failed.actor and failed.actor[: names.LABEL_LIMIT], **short)


def _encode_with_reference(envelope: Envelope, reference: PayloadReference) -> bytes:
    referring = replace(envelope, payload=NULL)
    # A header that the mesh has written may have an id with a character that SQS refuses.
    return escape(encode(referring.with_headers({headers.PAYLOAD_REF: msgspec.to_builtins(reference)})))
