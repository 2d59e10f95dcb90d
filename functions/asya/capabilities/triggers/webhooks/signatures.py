"""Reads and checks the signatures of webhooks (`protocol §16.webhooks.signature`).

Each scheme says which bytes are signed and where the digests are. All of them are HMAC-SHA256.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from asya.protocol.triggers import Signature, Webhook

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
