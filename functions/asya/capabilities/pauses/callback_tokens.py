"""Callback tokens: each answers one pause, without a signature of its bearer (`protocol §11`).

A token names a pause and its expiry, and has a MAC of both. The key of the MAC belongs to one mesh. The pause itself is answered
once, so a token is used once.
"""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from asya.protocol.times import format_time, parse_time

PATH = "/callbacks"
# An id has 256 bytes at most, and base64 adds a third.
_LONGEST = 600
_FORM = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})", re.ASCII)


class CallbackTokenError(ValueError):
    """The token opens no pause of this mesh, or has expired."""


@dataclass(frozen=True, slots=True)
class Callback:
    """The pause that a token answers.

    Attributes:
        epoch: the position of the pause.
        expires_at: the time from which the token is void.
    """

    task_id: str
    generation: int
    epoch: int
    expires_at: str


def key_label(namespace: str) -> bytes:
    """The label of the key for a mesh's callbacks."""
    return f"asya callbacks of {namespace}".encode()


def sign(key: bytes, callback: Callback) -> str:
    """The token of a callback; it needs no quoting in a URL. Equal callbacks have equal tokens."""
    expires_at = format_time(parse_time(callback.expires_at))
    text = f"{expires_at}\n{callback.generation}\n{callback.epoch}\n{callback.task_id}".encode("utf-8", "surrogatepass")
    return f"{_encoded(text)}.{_encoded(_code(key, text))}"


def url_of(gateway_url: str, token: str) -> str:
    """The address that a callback is sent to. Access logs have its path, and not its query."""
    return f"{gateway_url}{PATH}?token={token}"


def read(key: bytes, token: str, now: datetime) -> Callback:
    """Read a token and check its MAC, in a time that does not depend on the MAC.

    Raises:
        CallbackTokenError: the token is malformed, is of another mesh, or has expired.
    """
    match = _FORM.fullmatch(token) if len(token) <= _LONGEST else None
    if match is None:
        raise CallbackTokenError("the token is malformed")
    try:
        text = urlsafe_b64decode(match[1] + "=" * (-len(match[1]) % 4))
    except (Base64Error, ValueError):
        raise CallbackTokenError("the token is malformed") from None
    if not hmac.compare_digest(match[2], _encoded(_code(key, text))):
        raise CallbackTokenError("the token is not of this mesh")
    # The code is right, so this mesh has made the text, in this form.
    expires_at, generation, epoch, task_id = text.decode("utf-8", "surrogatepass").split("\n", 3)
    if parse_time(expires_at) <= now:
        raise CallbackTokenError("the token has expired")
    return Callback(task_id, int(generation), int(epoch), expires_at)


def _code(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, sha256).digest()


def _encoded(text: bytes) -> str:
    return urlsafe_b64encode(text).decode().rstrip("=")
