"""Reads the keys of a webhook from the text of its secret (`protocol §16.webhooks.keys`)."""

from asya.capabilities.triggers.webhooks.signatures import from_base64
from asya.protocol.triggers import Signature

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
