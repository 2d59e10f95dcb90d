"""Reads and checks the signatures of webhooks (`protocol §16.webhooks.signature`).

Each scheme says which bytes are signed and where the digests are. All of them are HMAC-SHA256.
"""

import base64
import binascii
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
_TIME = re.compile(r"[0-9]{1,11}")
# A dot would let the parts of the signed text be split elsewhere.
_ID = re.compile(r"[!-\-/-~]{1,255}")


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

    @property
    def key(self) -> str:
        """The key of the occurrence: a repetition has the same."""
        return f"webhook {hashlib.sha256(self.identity).hexdigest()}"

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
    identity, time = _header(headers, "webhook-id"), _header(headers, "webhook-timestamp")
    if not _ID.fullmatch(identity):
        raise UnsignedError("webhook-id has 1 to 255 printable characters other than a dot")
    # Repeated headers arrive as one, joined by commas.
    pairs = [part.partition(",") for part in _header(headers, "webhook-signature").split()]
    digests = _some(_base64(value) for version, _, value in pairs if version == "v1")
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
        digest = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return digest if len(digest) == _DIGEST_BYTES else None


def _seconds(text: str) -> int:
    if not _TIME.fullmatch(text):
        raise UnsignedError("the signed time is no number of seconds since 1970")
    return int(text)
