"""Stream tokens, for clients that cannot sign a request or set a header, such as EventSource (`protocol §13`, stream-token).

A token opens the stream of one task for an hour. It holds its expiry, and a MAC of the expiry and the task's id. The
key of the MAC belongs to one mesh and to the day on which the token expires.
"""

import hmac
import re
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from asya.protocol.api_errors import ApiError

LIFETIME = timedelta(hours=1)

_FORM = re.compile(r"([0-9]{1,12})\.([A-Za-z0-9_-]{43})", re.ASCII)


def key_label(namespace: str, expires_at: datetime) -> bytes:
    """Return the label of the key for a mesh's tokens that expire on a day."""
    return f"asya stream tokens of {namespace} {expires_at.date().isoformat()}".encode()


def expiry(now: datetime) -> datetime:
    """Return the expiry of a token that is made now."""
    return (now + LIFETIME).replace(microsecond=0)


def sign(key: bytes, task_id: str, expires_at: datetime) -> str:
    """Return the token for a task's stream; it needs no quoting in a URL."""
    seconds = int(expires_at.timestamp())
    code = hmac.new(key, f"{seconds}\n{task_id}".encode("utf-8", "surrogatepass"), sha256).digest()
    return f"{seconds}.{urlsafe_b64encode(code).decode().rstrip('=')}"


def read_expiry(token: str, now: datetime) -> datetime:
    """Return the expiry that a token claims.

    Raises:
        ApiError: 403 if the token is malformed or expired, or expires later than a new token would.
    """
    match = _FORM.fullmatch(token)
    seconds = int(match[1]) if match else 0
    if not now.timestamp() < seconds <= (now + LIFETIME).timestamp():
        raise _forbidden()
    return datetime.fromtimestamp(seconds, UTC)


def verify(key: bytes, token: str, task_id: str, expires_at: datetime) -> None:
    """Check that a token is for this task's stream.

    Raises:
        ApiError: 403 if it is not.
    """
    if not hmac.compare_digest(token, sign(key, task_id, expires_at)):
        raise _forbidden()


def _forbidden() -> ApiError:
    problem = "the token does not open this stream or has expired; request a new one with POST …/stream-token"
    return ApiError(403, "forbidden", problem, "token")
