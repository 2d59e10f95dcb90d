"""Reads objects that code of users has written: never more of them than the function has room for.

Classifies the errors of such reads.
"""

import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

_OWN = 96 * 1024 * 1024
"""What a function needs for itself: 60 to 80 MB were measured."""
_READERS_SHARE = 5
"""A payload is in memory as it was read, in its envelope, and encoded again, for a message and as an object: 4.2 times."""
_MERGES_SHARE = 7
"""Slices are in memory as they were read, as a list, in the origin, in its envelope, and encoded again: 5.9 times."""


class Readable(Protocol):
    """The body of an object of S3."""

    def read(self, amt: int, /) -> bytes:
        """Read so many bytes at most."""


def read_at_most(body: Readable, limit: int | None) -> bytes | None:
    """Read a body of at most `limit` bytes; None if it is larger. A larger body is read up to one byte beyond the limit.

    Args:
        limit: None for any size, outside of Lambda.
    """
    if limit is None:
        return body.read(-1)
    content = body.read(limit + 1)
    return content if len(content) <= limit else None


def largest_payload() -> int | None:
    """The bytes of the largest payload that this function reads for others; None outside of Lambda."""
    return _share(_READERS_SHARE)


def largest_set() -> int | None:
    """The bytes of the largest set of slices that this function merges; None outside of Lambda."""
    return _share(_MERGES_SHARE)


def _share(parts: int) -> int | None:
    megabytes = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    return max(0, int(megabytes) * 1024 * 1024 - _OWN) // parts if megabytes.isdecimal() else None


def is_missing(error: "ClientError") -> bool:
    """Whether S3 has no such object."""
    return error.response["Error"]["Code"] in ("NoSuchKey", "404", "NotFound")


def is_unreadable(error: "ClientError") -> bool:
    """Whether S3 keeps the object in a form in which nobody can read it now.

    Its writer has archived it, or encrypted it with a key that comes with each request (SSE-C). HEAD names the latter `400`.
    """
    return error.response["Error"]["Code"] in ("InvalidObjectState", "InvalidRequest", "400")
