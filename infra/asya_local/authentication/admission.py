"""Decides which requests enter a local cloud, and as whom. Pure.

Everything that runs on the machine reaches loopback: programs of other users, and web pages in a browser. So each request names
this machine as its host, comes from no web page, and is signed with a key of this cloud, or bears the cloud's own secret.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from urllib.parse import unquote

from asya_local.authentication.signatures import (
    HttpCall,
    Signature,
    SignatureError,
    check_signature,
    named_payload,
    read_signature,
)

SECRET_HEADER = "x-asya-local-secret"
SECRET_VARIABLE = "ASYA_LOCAL_SECRET"
CALLER_PATH = "/_local/caller"
"""Of MiniStack's process: names the caller of a request that came to another server of the cloud."""
SNAPSHOT_PATH = "/_local/snapshot"
"""Of MiniStack's process: saves its state."""

_HOST = re.compile(r"(127\.0\.0\.1|([a-z0-9-]+\.)*localhost)(:\d{1,5})?", re.IGNORECASE | re.ASCII)
_CLOUDFORMATION_ANSWER = re.compile(r"/_ministack/cfn-(response|signal)/[A-Za-z0-9_-]{16,}")
"""Custom resources answer here. The rest of the path is random, and known to the function alone."""
_API_PATH = "/_aws/execute-api/"
LARGEST_API_BODY = 10 * 1024 * 1024
"""As API Gateway has it."""
LARGEST_BODY = 20 * 1024 * 1024
"""Of a body that has to be read before its signature can be checked. DynamoDB takes 16 MiB, other services less."""


class Entry(Enum):
    """How an admitted request proves who sends it."""

    SECRET = "secret"
    """It bears the secret of this cloud: the command and the servers themselves."""
    SIGNATURE = "signature"
    """Its signature is to be checked."""
    NONE = "none"
    """Not at all: a call of an HTTP API, whose routes decide about it, or the answer of a custom resource."""


@dataclass(frozen=True)
class Refusal:
    """Why a request may not enter. The code is AWS's."""

    code: str
    message: str


def admit(call: HttpCall, path: str, secret: str, *, is_api: bool = False) -> Entry | Refusal:
    """Decide whether a request may enter, from everything but its signature.

    Args:
        call: The request.
        path: Its decoded path, by which MiniStack chooses a service.
        secret: The secret of this cloud.
        is_api: Whether the request calls an HTTP API. An API has its own rules for other origins and for unsigned calls.
    """
    if refusal := refuse_foreign(call, is_api=is_api):
        return refusal
    if any(_is_internal(each) for each in _readings(path)):
        if call.method == "PUT" and _CLOUDFORMATION_ANSWER.fullmatch(path) and path == call.raw_path:
            return Entry.NONE
        return Entry.SECRET if has_secret(call, secret) else refuse_internal(path)
    try:
        is_signed = read_signature(call) is not None
    except SignatureError as error:
        return Refusal(error.code, error.message)
    if not is_signed and not is_api:
        return Refusal("MissingAuthenticationToken", "Missing Authentication Token: sign with the key of local.json.")
    return Entry.SIGNATURE if is_signed else Entry.NONE


def _is_internal(path: str) -> bool:
    return path.startswith("/_") and not path.startswith(_API_PATH)


def _readings(path: str) -> tuple[str, ...]:
    """Return what a path may be read as: as it is, decoded once more, and each without `.`, `..` and empty segments.

    A reader behind this door may normalize what this one does not, so a path is internal if any reading of it is.
    """
    texts = (path, unquote(path))
    return tuple(reading for text in texts for reading in (text, _plain(text.replace("\\", "/"))))


def _plain(path: str) -> str:
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    return "/" + "/".join(segments) + ("/" if path.endswith("/") and segments else "")


def body_limit(call: HttpCall, signature: Signature | None, *, is_api: bool) -> int | None:
    """Return how many bytes a body may have; None if its sender is known already.

    Args:
        call: The request.
        signature: Its signature, as far as the headers prove it; None of a request without one.
        is_api: Whether the request calls an HTTP API.
    """
    if signature is None or is_api:
        return LARGEST_API_BODY
    return LARGEST_BODY if named_payload(signature, call) is None else None


def refuse_foreign(call: HttpCall, *, is_api: bool = False) -> Refusal | None:
    """Refuse a request of a web page, and one for another host, which is a web page after DNS rebinding."""
    host = call.headers.get("host", "")
    if not _HOST.fullmatch(host):
        return Refusal("AccessDenied", f"The local cloud is at 127.0.0.1 and localhost, not at {host!r}.")
    if "origin" in call.headers and not is_api:
        return Refusal("AccessDenied", "The local cloud takes no requests from web pages (header Origin).")
    return None


def has_secret(call: HttpCall, secret: str) -> bool:
    """Return whether a request bears the secret of this cloud."""
    return hmac.compare_digest(call.headers.get(SECRET_HEADER, "").encode(), secret.encode())


def page_token(secret: str, page: str) -> str:
    """Return the token that opens one page in a browser, which cannot send the secret."""
    return hmac.digest(secret.encode(), page.encode(), "sha256").hex()


def opens_page(call: HttpCall, secret: str) -> bool:
    """Return whether a request bears the token of the page that it gets."""
    token = dict(call.parameters).get("token", "")
    return call.method == "GET" and hmac.compare_digest(token.encode(), page_token(secret, call.raw_path).encode())


def refuse_internal(path: str) -> Refusal:
    """Return the refusal of an internal path."""
    return Refusal("AccessDenied", f"{path} is for the local cloud itself (header {SECRET_HEADER}).")


SecretKeys = Callable[[Signature], str | Refusal]
"""Returns the secret key of a signature's access key and session token, or why there is none."""


def authenticate(call: HttpCall, body: bytes | None, secret_keys: SecretKeys, now: datetime) -> Signature | Refusal:
    """Return the checked signature of a request, or why the request is not from the holder of its key.

    Args:
        call: The request.
        body: Its body; None before it is read, which is as much as the headers prove.
        secret_keys: Returns the secret key of a signature.
        now: The time.
    """
    try:
        signature = read_signature(call)
        if signature is None:
            return Refusal("MissingAuthenticationToken", "Missing Authentication Token")
        secret_key = secret_keys(signature)
        if isinstance(secret_key, Refusal):
            return secret_key
        check_signature(signature, call, secret_key, body, now)
    except SignatureError as error:
        return Refusal(error.code, error.message)
    return signature
