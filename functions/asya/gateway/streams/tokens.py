"""Tokens for who can neither sign nor set a header, as a browser's EventSource (`protocol §13`, stream-token).

A token is good for one task's stream, and for an hour: the end of its time, and a MAC of that and of the task's id. The
key of the MAC belongs to the mesh and to the day on which the token ends.
"""

import hmac
import re
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from asya.protocol.api_errors import ApiError

LIFETIME = timedelta(hours=1)

_FORM = re.compile(r"([0-9]{1,12})\.([A-Za-z0-9_-]{43})", re.ASCII)


def key_label(namespace: str, ends_at: datetime) -> bytes:
    """What tells the key of a mesh's tokens that end on this day from all others."""
    return f"asya stream tokens of {namespace} {ends_at.date().isoformat()}".encode()


def expiry(now: datetime) -> datetime:
    """When a token ends that is made now."""
    return (now + LIFETIME).replace(microsecond=0)


def sign(key: bytes, task_id: str, ends_at: datetime) -> str:
    """The token for a task's stream; it needs no quoting in a URL."""
    seconds = int(ends_at.timestamp())
    code = hmac.new(key, f"{seconds}\n{task_id}".encode("utf-8", "surrogatepass"), sha256).digest()
    return f"{seconds}.{urlsafe_b64encode(code).decode().rstrip('=')}"


def read_expiry(token: str, now: datetime) -> datetime:
    """When a token says it ends.

    Raises:
        ApiError: 403 if it is none, or its time is over, or would be over later than that of any that was made.
    """
    found = _FORM.fullmatch(token)
    seconds = int(found[1]) if found else 0
    if not now.timestamp() < seconds <= (now + LIFETIME).timestamp():
        raise _refusal()
    return datetime.fromtimestamp(seconds, UTC)


def verify(key: bytes, token: str, task_id: str, ends_at: datetime) -> None:
    """Whether a token is for this task's stream.

    Raises:
        ApiError: 403 if it is not.
    """
    if not hmac.compare_digest(token, sign(key, task_id, ends_at)):
        raise _refusal()


def _refusal() -> ApiError:
    problem = "the token is not one for this stream, or its hour is over; POST …/stream-token gives another"
    return ApiError(403, "forbidden", problem, "token")
