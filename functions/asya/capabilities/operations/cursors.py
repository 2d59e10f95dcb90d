"""Encodes where a page ends. A cursor is valid for its own query; it grants no access."""

import base64
import hashlib

import msgspec

from asya.protocol.api_errors import ApiError

_LENGTH = 8 * 1024


def encode_cursor(scope: str, parts: tuple[str, ...]) -> str:
    """Encode the cursor of the page that follows a position.

    Args:
        scope: the query that the cursor is valid for.
        parts: the position.
    """
    content = msgspec.json.encode((_digest(scope), *parts))
    checksum = hashlib.sha256(content).digest()[:6]
    return base64.urlsafe_b64encode(checksum + content).decode().rstrip("=")


def decode_cursor(scope: str, cursor: str, length: int) -> tuple[str, ...]:
    """Decode a cursor into its parts.

    Args:
        length: how many parts a position has.

    Raises:
        ApiError: 400 if the cursor is of another query, forged or cut.
    """
    if len(cursor) > _LENGTH or not cursor.isascii():
        raise invalid_cursor()
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        digest, *parts = msgspec.json.decode(data[6:], type=tuple[str, ...])
    except (ValueError, msgspec.MsgspecError):
        raise invalid_cursor() from None
    if digest != _digest(scope) or len(parts) != length or encode_cursor(scope, tuple(parts)) != cursor:
        raise invalid_cursor()
    return tuple(parts)


def invalid_cursor() -> ApiError:
    """The error of a cursor that is of another query, forged or cut."""
    problem = "the cursor does not belong to this query; start again without a cursor"
    return ApiError(400, "invalid_cursor", problem, "cursor")


def _digest(scope: str) -> str:
    return hashlib.sha256(scope.encode("utf-8", "surrogatepass")).hexdigest()[:16]
