"""Reads objects that code of users has written: never more of them than the function has room for.

Classifies the errors of such reads.
"""

import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

_READERS_SHARE = 4
"""A payload is in memory as it was read, in its envelope, and encoded again."""
_MERGES_SHARE = 6
"""Slices are in memory as they were read, as a list, in the payload of the origin, in its envelope, and encoded again."""


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
    memory = _memory()
    return memory // _READERS_SHARE if memory is not None else None


def largest_set() -> int | None:
    """The bytes of the largest set of slices that this function merges; None outside of Lambda."""
    memory = _memory()
    return memory // _MERGES_SHARE if memory is not None else None


def _memory() -> int | None:
    megabytes = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    return int(megabytes) * 1024 * 1024 if megabytes.isdecimal() else None


def is_missing(error: "ClientError") -> bool:
    """Whether S3 has no such object."""
    return error.response["Error"]["Code"] in ("NoSuchKey", "404", "NotFound")


def is_unreadable(error: "ClientError") -> bool:
    """Whether S3 keeps the object in a form in which nobody can read it now.

    Its writer has archived it, or encrypted it with a key that comes with each request (SSE-C). HEAD names the latter `400`.
    """
    return error.response["Error"]["Code"] in ("InvalidObjectState", "InvalidRequest", "400")
