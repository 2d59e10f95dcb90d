"""Webhooks: keys and signatures, what repeats share, bodies, and their occurrences (`protocol §16.webhooks`).

Each scheme says which bytes are signed and where the digests are. All of them are HMAC-SHA256.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import parse_qsl

import msgspec

from asya.capabilities.triggers.occurrences import Occurrence, fill_in, part_at
from asya.function.claim_check import PayloadReference
from asya.protocol.strict_json import NotJsonError, decode_exact, encode_value
from asya.protocol.task import StartedBy
from asya.protocol.triggers import Signature, Trigger, Webhook

MOST_SECONDS = 300.0
"""How far the signed time may be from now."""
_DIGEST_BYTES = hashlib.sha256().digest_size
_HEX = re.compile(r"[0-9a-fA-F]{64}")
_URL_ALPHABET = str.maketrans("-_", "+/")
_TIME = re.compile(r"[0-9]{1,11}")
_ID = re.compile(r"[ -~]{1,255}")
# The signed text is `{id}.{time}.{body}`. An id with a number between dots would let it be split elsewhere.
_NUMBER_IN_ID = re.compile(r"\.[0-9]{1,11}(?:\.|$)")
# Repeated headers arrive as one, joined by commas.
_STANDARD_DIGEST = re.compile(r"(?:^|[\s,])v1,([A-Za-z0-9+/_-]+=*)")
_STANDARD_PREFIXES = ("webhook", "svix")


class UnsignedError(Exception):
    """A request has no signature of the scheme, or one of another form. The message has no part of the request."""


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """What a request claims to be signed.

    Attributes:
        content: the signed bytes.
        digests: the digests in the request, of which one must be right.
        identity: the signed bytes that are the same if the sender repeats the request.
        time: the signed time in seconds since 1970; None for a scheme without one.
    """

    content: bytes
    digests: tuple[bytes, ...]
    identity: bytes
    time: int | None = None

    def is_signed_with(self, keys: Iterable[bytes]) -> bool:
        """Whether one of the keys has made one of the digests. Each comparison takes constant time."""
        right = False
        for key in keys:
            expected = hmac.digest(key, self.content, "sha256")
            for digest in self.digests:
                right |= hmac.compare_digest(expected, digest)
        return right

    def is_recent(self, now: datetime) -> bool:
        """Whether the signed time is now, give or take five minutes; true without one."""
        return self.time is None or abs(now.timestamp() - self.time) <= MOST_SECONDS


def read_signature(webhook: Webhook, headers: Mapping[str, str], body: bytes) -> SignedRequest:
    """Read the signature of a request.

    Args:
        headers: the headers, names in lower case.
        body: the bytes as they were sent.

    Raises:
        UnsignedError: a header is missing, or it has another form.
    """
    return _SCHEMES[webhook.signature](webhook, headers, body)


def _github(_webhook: Webhook, headers: Mapping[str, str], body: bytes) -> SignedRequest:
    scheme, _, digest = _header(headers, "X-Hub-Signature-256").partition("=")
    return SignedRequest(body, _some([_hex(digest)] if scheme == "sha256" else []), body)


def _stripe(_webhook: Webhook, headers: Mapping[str, str], body: bytes) -> SignedRequest:
    pairs = [part.strip().partition("=") for part in _header(headers, "Stripe-Signature").split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    if len(times) != 1:
        raise UnsignedError("the signature has no time")
    digests = _some(_hex(value) for name, _, value in pairs if name == "v1")
    return SignedRequest(f"{times[0]}.".encode() + body, digests, body, _seconds(times[0]))


def _slack(_webhook: Webhook, headers: Mapping[str, str], body: bytes) -> SignedRequest:
    time = _header(headers, "X-Slack-Request-Timestamp")
    version, _, digest = _header(headers, "X-Slack-Signature").partition("=")
    digests = _some([_hex(digest)] if version == "v0" else [])
    return SignedRequest(f"v0:{time}:".encode() + body, digests, body, _seconds(time))


def _standard(_webhook: Webhook, headers: Mapping[str, str], body: bytes) -> SignedRequest:
    prefix = next((each for each in _STANDARD_PREFIXES if f"{each}-id" in headers), _STANDARD_PREFIXES[0])
    identity, time, signature = (_header(headers, f"{prefix}-{name}") for name in ("id", "timestamp", "signature"))
    if not _ID.fullmatch(identity) or _NUMBER_IN_ID.search(identity):
        raise UnsignedError(f"{prefix}-id has 1 to 255 printable characters, and no number between dots")
    digests = _some(_base64(value) for value in _STANDARD_DIGEST.findall(signature))
    return SignedRequest(f"{identity}.{time}.".encode() + body, digests, identity.encode(), _seconds(time))


def _plain(webhook: Webhook, headers: Mapping[str, str], body: bytes) -> SignedRequest:
    digest = _header(headers, webhook.header).strip().removeprefix("sha256=")
    return SignedRequest(body, _some([_hex(digest) or _base64(digest)]), body)


_SCHEMES: Mapping[Signature, Callable[[Webhook, Mapping[str, str], bytes], SignedRequest]] = {
    "github": _github,
    "stripe": _stripe,
    "slack": _slack,
    "standard-webhooks": _standard,
    "hmac-sha256": _plain,
}


def _header(headers: Mapping[str, str], name: str) -> str:
    text = headers.get(name.lower())
    if text is None:
        raise UnsignedError(f"the header {name} is missing")
    return text


def _some(digests: Iterable[bytes | None]) -> tuple[bytes, ...]:
    found = tuple(digest for digest in digests if digest is not None)
    if not found:
        raise UnsignedError("the signature has another form than that of its scheme")
    return found


def _hex(text: str) -> bytes | None:
    return bytes.fromhex(text) if _HEX.fullmatch(text) else None


def _base64(text: str) -> bytes | None:
    try:
        digest = from_base64(text)
    except ValueError:
        return None
    return digest if len(digest) == _DIGEST_BYTES else None


def from_base64(text: str) -> bytes:
    """Decode base64 with or without its padding, of the standard or the URL alphabet.

    Raises:
        ValueError: the text is no base64.
    """
    bare = text.rstrip("=").translate(_URL_ALPHABET)
    return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)


def _seconds(text: str) -> int:
    if not _TIME.fullmatch(text):
        raise UnsignedError("the signed time is no number of seconds since 1970")
    return int(text)


SHORTEST_KEY = 16  # bytes
MOST_KEYS = 5
_VERSION, _PREFIX = "v1,", "whsec_"


class UnusableSecretError(ValueError):
    """The text of a secret has no keys. The message has no part of the text."""


def read_keys(text: str, signature: Signature) -> tuple[bytes, ...]:
    """The keys in a secret: one for each line, so that an old key and its successor count together.

    Raises:
        UnusableSecretError: there is no key, or a line is none.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not 1 <= len(lines) <= MOST_KEYS:
        raise UnusableSecretError(f"it has {len(lines)} lines; it needs 1 to {MOST_KEYS}, each with one key")
    if lines[0].startswith("{"):
        raise UnusableSecretError("it is JSON; it needs the key as plain text")
    keys = tuple(_standard_key(line) if signature == "standard-webhooks" else line.encode() for line in lines)
    if min(map(len, keys)) < SHORTEST_KEY:
        raise UnusableSecretError(f"a key has at least {SHORTEST_KEY} bytes")
    return keys


def _standard_key(line: str) -> bytes:
    try:
        return from_base64(line.removeprefix(_VERSION).removeprefix(_PREFIX))
    except ValueError:
        raise UnusableSecretError(
            f"a key of standard-webhooks is base64, after {_PREFIX!r}, after {_VERSION + _PREFIX!r} or alone"
        ) from None


IDS_OF_SCHEMES: Mapping[Signature, str] = {"stripe": "/id"}
"""The ids of schemes whose bodies change between repetitions."""


def occurrence_key(webhook: Webhook, signed: SignedRequest, headers: Mapping[str, str], text: str) -> str:
    """The key of the occurrence: a repetition has the same.

    A request without the id is known by what its scheme signs, so that it is not lost. No scheme signs the content type, so the
    text of the body alone says how it is read here.

    Args:
        webhook: the webhook.
        signed: what the request has signed.
        headers: its headers, names in lower case.
        text: its body.
    """
    named = _named(webhook.id or IDS_OF_SCHEMES.get(webhook.signature, ""), headers, text)
    identity = signed.identity if named is None else named
    return f"webhook {'' if named is None else 'id '}{hashlib.sha256(identity).hexdigest()}"


def _named(name: str, headers: Mapping[str, str], text: str) -> bytes | None:
    """The id at a pointer or in a header; None if the request has none there."""
    if not name.startswith("/"):
        value = headers.get(name.lower(), "").strip() if name else ""
        return value.encode() if value else None
    try:
        part = part_at(_json_or_form(text), name)
        return None if part is None or part == "" else bytes(encode_value(part))
    except (ValueError, NotJsonError):
        return None


_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 1000
_JSON_FIELD = "payload"


class UnreadableBodyError(ValueError):
    """The body has another form than it should."""


def read_body(text: str, content_type: str) -> object:
    """The value of a body.

    Args:
        text: the body.
        content_type: the header of the request; empty counts as JSON.

    Raises:
        UnreadableBodyError: the body is not of its type.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if not media_type or media_type == "application/json" or media_type.endswith("+json"):
        return _json(text)
    return _form(text) if media_type == _FORM else {"body": text}


def _json_or_form(text: str) -> object:
    """The value of a body of either type.

    Raises:
        UnreadableBodyError: it is neither.
    """
    try:
        return _json(text)
    except UnreadableBodyError:
        return _form(text)


def type_of(body: object) -> str:
    """The type that a body names in its field `type`, as Stripe, Slack and Standard Webhooks have it; empty without one."""
    found = body.get("type") if isinstance(body, dict) else None
    return found if isinstance(found, str) else ""


def _json(text: str) -> object:
    try:
        return decode_exact(text.encode())
    except ValueError as error:
        raise UnreadableBodyError(f"the body is not valid JSON: {error}") from None


def _form(text: str) -> object:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise UnreadableBodyError(f"the body is no form with up to {_MOST_FIELDS} fields: {error}") from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    if list(fields) == [_JSON_FIELD] and len(fields[_JSON_FIELD]) == 1:
        # GitHub and Slack send JSON in a form with this field alone.
        try:
            return decode_exact(fields[_JSON_FIELD][0].encode())
        except ValueError:
            pass
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}


VALUES_OF_WEBHOOKS: dict[str, object] = {"body": {}, "event": "", "received_at": ""}
"""The values for the template of a payload, each empty. A body need not be text."""


class UnusableDeliveryError(ValueError):
    """A webhook that can start no task of its trigger."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A webhook whose signature was right.

    Attributes:
        key: the key of the occurrence.
        body: the body; empty if it is stored.
        stored: the object with the body that is too large for a message.
        content_type: the content type of the body.
        event: the name of the event in a header; empty if the scheme has none.
        received_at: when the gateway took it.
    """

    key: str
    body: str
    content_type: str = ""
    event: str = ""
    received_at: str
    stored: PayloadReference | None = None


class WebhookMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The message of a webhook on the queue `x-triggers`."""

    trigger: str
    webhook: Delivery


def webhook_message(trigger: str, delivery: Delivery) -> bytes:
    """The message of a webhook: JSON in ASCII, because SQS accepts XML characters only."""
    message = WebhookMessage(trigger=trigger, webhook=delivery)
    return bytes(encode_value(msgspec.to_builtins(message)))


def webhook_values(delivery: Delivery, body: object) -> dict[str, object]:
    """The values for the template of a payload."""
    return {"body": body, "event": delivery.event or type_of(body), "received_at": delivery.received_at}


def webhook_occurrence(name: str, trigger: Trigger, delivery: Delivery) -> Occurrence:
    """The occurrence of a webhook.

    Raises:
        UnusableDeliveryError: the body has another form than its type says, or it lacks what `input` points to.
    """
    try:
        body = read_body(delivery.body, delivery.content_type)
        if trigger.payload is not None:
            payload = fill_in(trigger.payload, webhook_values(delivery, body))
        else:
            payload = part_at(body, trigger.input)
        encoded = encode_value(payload)
    except (ValueError, NotJsonError) as error:
        raise UnusableDeliveryError(str(error)) from None
    return Occurrence(name, delivery.key, encoded, StartedBy(kind="trigger", name=name))
