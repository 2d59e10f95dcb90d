"""AWS Signature Version 4: reads the signature of a request and checks it. Pure."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from urllib.parse import parse_qsl, quote

ALGORITHM = "AWS4-HMAC-SHA256"
_AUTHORIZATION = re.compile(
    rf"{ALGORITHM} Credential=(?P<key>\w+)/(?P<date>\d{{8}})/(?P<region>[\w-]+)/(?P<service>[\w-]+)/aws4_request, ?"
    r"SignedHeaders=(?P<headers>[\w;.-]+), ?Signature=(?P<value>[0-9a-f]{64})",
    re.ASCII,
)
_CREDENTIAL = re.compile(r"(?P<key>\w+)/(?P<date>\d{8})/(?P<region>[\w-]+)/(?P<service>[\w-]+)/aws4_request", re.ASCII)
_DEFAULT_STAGE = "$default"
_MOMENT = re.compile(r"\d{8}T\d{6}Z", re.ASCII)
_REQUIRED = ("X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-SignedHeaders", "X-Amz-Signature")
_OPTIONAL = ("X-Amz-Expires", "X-Amz-Security-Token")
_NAMING_A_KEY = frozenset({"x-amz-credential", "x-amz-signature", "awsaccesskeyid"})
_CLOCK_SKEW = timedelta(minutes=15)
_LONGEST_PRESIGNED = timedelta(days=7)
_UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
_SIGNED_CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
_UNSIGNED_PAYLOADS = frozenset({_UNSIGNED_PAYLOAD, "STREAMING-UNSIGNED-PAYLOAD-TRAILER"})
_NOTHING = hashlib.sha256(b"").hexdigest()


class SignatureError(Exception):
    """A request whose signature is missing parts, too old, or wrong. `code` is AWS's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class HttpCall:
    """A request as it arrived, without its body."""

    method: str
    raw_path: str
    query: str
    headers: Mapping[str, str]
    """By lower-case name; the values of repeated headers are joined by a comma."""

    @cached_property
    def parameters(self) -> list[tuple[str, str]]:
        """The decoded parameters of the query."""
        return parse_qsl(self.query, keep_blank_values=True)


@dataclass(frozen=True, kw_only=True)
class Signature:
    """The signature of a request: in its `Authorization` header, or in its query if it is presigned."""

    access_key: str
    date: str
    region: str
    service: str
    signed_headers: str
    value: str
    signed_at: str
    token: str
    expires: timedelta | None = None
    """How long a presigned request is valid; None for a signature in the header."""

    @property
    def is_presigned(self) -> bool:
        """Whether the signature is in the query."""
        return self.expires is not None

    @property
    def scope(self) -> str:
        """The scope of the signing key."""
        return f"{self.date}/{self.region}/{self.service}/aws4_request"


def read_signature(call: HttpCall) -> Signature | None:
    """Return the signature of a request; None if the request names no AWS key.

    A request that names a key in two places, or in a form that AWS no longer takes, is refused. So no other reader of the request
    can find a different key in it.

    Raises:
        SignatureError: The signature is malformed.
    """
    authorization = call.headers.get("authorization", "")
    is_in_query = any(name.lower() in _NAMING_A_KEY for name, _ in call.parameters)
    if authorization[:3].upper() == "AWS":
        if is_in_query:
            raise SignatureError("IncompleteSignature", "The request names a key in its header and in its query.")
        return _in_header(authorization, call)
    if not is_in_query:
        return None
    if authorization:
        raise SignatureError(
            "IncompleteSignature", "The request has a signature in its query and another Authorization."
        )
    return _in_query(call)


def _in_header(authorization: str, call: HttpCall) -> Signature:
    match = _AUTHORIZATION.fullmatch(authorization)
    if match is None:
        raise SignatureError("IncompleteSignature", f"The Authorization header is no signature with {ALGORITHM}.")
    headers = call.headers
    return Signature(
        access_key=match["key"],
        date=match["date"],
        region=match["region"],
        service=match["service"],
        signed_headers=match["headers"],
        value=match["value"],
        signed_at=headers.get("x-amz-date", ""),
        token=headers.get("x-amz-security-token", ""),
    )


def _in_query(call: HttpCall) -> Signature:
    names = [name for name, _ in call.parameters]
    known = {name.lower(): name for name in (*_REQUIRED, *_OPTIONAL)}
    is_exact = all(known.get(name.lower(), name) == name and name.lower() != "awsaccesskeyid" for name in names)
    counts = {name: names.count(name) for name in known.values()}
    values = dict(call.parameters)
    credential = _CREDENTIAL.fullmatch(values.get("X-Amz-Credential", ""))
    if (
        not is_exact
        or any(counts[name] != 1 for name in _REQUIRED)
        or any(counts[name] > 1 for name in _OPTIONAL)
        or credential is None
        or values["X-Amz-Algorithm"] != ALGORITHM
        or not re.fullmatch(r"[1-9]\d{0,6}", values.get("X-Amz-Expires", "900"), re.ASCII)
    ):
        raise SignatureError("IncompleteSignature", f"The query is not presigned with {ALGORITHM}.")
    return Signature(
        access_key=credential["key"],
        date=credential["date"],
        region=credential["region"],
        service=credential["service"],
        signed_headers=values["X-Amz-SignedHeaders"],
        value=values["X-Amz-Signature"],
        signed_at=values["X-Amz-Date"],
        token=values.get("X-Amz-Security-Token", ""),
        expires=timedelta(seconds=int(values.get("X-Amz-Expires", "900"))),
    )


def check_signature(signature: Signature, call: HttpCall, secret_key: str, body: bytes | None, now: datetime) -> None:
    """Check the time and the value of a signature.

    Args:
        body: The body; None before it is read. Then its value is checked only if the headers say what of the body is signed.

    Raises:
        SignatureError: The signature is not valid now, or the holder of the secret key has not signed this request.
    """
    _check_time(signature, now)
    signed = signature.signed_headers.split(";")
    if "host" not in signed:
        raise SignatureError("SignatureDoesNotMatch", "The header host must be signed.")
    unsigned = [name for name in call.headers if name.startswith("x-amz-") and name not in signed]
    if unsigned:
        raise SignatureError("SignatureDoesNotMatch", f"These headers are not signed: {', '.join(unsigned)}.")
    key = _signing_key(secret_key, signature.date, signature.region, signature.service)
    payload = named_payload(signature, call) if body is None else _payload_hash(signature, call, body)
    if payload is None:
        return
    is_signed = any(
        hmac.compare_digest(
            _hmac(key, _text_to_sign(signature, _canonical_request(signature, call, path, signed, payload))),
            signature.value.encode(),
        )
        for path in _canonical_paths(signature, call)
    )
    has_chunks = body is not None and payload.startswith(_SIGNED_CHUNKS)
    if not is_signed or (has_chunks and not _has_signed_chunks(signature, key, body or b"")):
        raise SignatureError(
            "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."
        )


def _check_time(signature: Signature, now: datetime) -> None:
    if not _MOMENT.fullmatch(signature.signed_at) or signature.signed_at[:8] != signature.date:
        raise SignatureError("CredentialDateMismatch", "The date of the credential is not that of X-Amz-Date.")
    try:
        signed_at = datetime.fromisoformat(signature.signed_at)
    except ValueError:
        raise SignatureError("IncompleteSignature", "X-Amz-Date is not a date.") from None
    valid_for = _CLOCK_SKEW if signature.expires is None else min(signature.expires, _LONGEST_PRESIGNED)
    if not signed_at - _CLOCK_SKEW <= now <= signed_at + valid_for:
        raise SignatureError("RequestTimeTooSkewed", f"The signature of {signature.signed_at} is not valid now.")


def named_payload(signature: Signature, call: HttpCall) -> str | None:
    """Return what the headers say is signed of the body; None if only the body tells, as with all services but S3."""
    if signature.service != "s3":
        return None
    return _UNSIGNED_PAYLOAD if signature.is_presigned else call.headers.get("x-amz-content-sha256")


def _payload_hash(signature: Signature, call: HttpCall, body: bytes) -> str:
    """Return the hash of the body that the signature covers, or S3's word for a body that it covers otherwise."""
    given = call.headers.get("x-amz-content-sha256", "")
    if signature.service == "s3":
        if signature.is_presigned:
            return _UNSIGNED_PAYLOAD
        if given in _UNSIGNED_PAYLOADS or given.startswith(_SIGNED_CHUNKS):
            return given
    return hashlib.sha256(body).hexdigest()


def _canonical_paths(signature: Signature, call: HttpCall) -> tuple[str, ...]:
    """Return the forms of the path that a signer may have signed.

    S3 signs the path as it is sent, the other services the normalized path, encoded once more. Old versions of curl do not encode
    the name of the stage `$default`, which is in addresses of the local cloud only.
    """
    if signature.service == "s3":
        return (call.raw_path,)
    encoded = quote(_without_dot_segments(call.raw_path), safe="/-_.~")
    plain = encoded.replace(f"/{quote(_DEFAULT_STAGE)}/", f"/{_DEFAULT_STAGE}/", 1)
    return (encoded,) if plain == encoded else (encoded, plain)


def _canonical_request(signature: Signature, call: HttpCall, path: str, signed: list[str], payload: str) -> str:
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in call.parameters)
    query = "&".join(f"{name}={value}" for name, value in pairs if name != "X-Amz-Signature")
    headers = "".join(f"{name}:{' '.join(call.headers.get(name, '').split())}\n" for name in signed)
    return "\n".join((call.method, path, query, headers, signature.signed_headers, payload))


def _without_dot_segments(path: str) -> str:
    if "//" not in path and "/." not in path:
        return path or "/"
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment and segment != ".":
            segments.append(segment)
    return "/" + "/".join(segments) + ("/" if path.endswith("/") and segments else "")


def _text_to_sign(signature: Signature, canonical_request: str) -> str:
    digest = hashlib.sha256(canonical_request.encode()).hexdigest()
    return "\n".join((ALGORITHM, signature.signed_at, signature.scope, digest))


@lru_cache(maxsize=1024)
def _signing_key(secret_key: str, *scope: str) -> bytes:
    """Derive the key of a date, region and service. Deriving it costs more than a signature, and serves a whole day."""
    key = f"AWS4{secret_key}".encode()
    for part in (*scope, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256").hex().encode()


def _has_signed_chunks(signature: Signature, key: bytes, body: bytes) -> bool:
    """Return whether each chunk of an S3 upload is signed, and follows its predecessor."""
    previous, position = signature.value, 0
    while (end := body.find(b"\r\n", position)) >= 0:
        match = re.fullmatch(rb"([0-9a-fA-F]{1,16});chunk-signature=([0-9a-f]{64})", body[position:end])
        if match is None:
            return False
        size = int(match[1], 16)
        chunk = body[end + 2 : end + 2 + size]
        parts = (f"{ALGORITHM}-PAYLOAD", signature.signed_at, signature.scope, previous, _NOTHING)
        text = "\n".join((*parts, hashlib.sha256(chunk).hexdigest()))
        if len(chunk) != size or not hmac.compare_digest(_hmac(key, text), match[2]):
            return False
        if size == 0:
            return True
        previous, position = match[2].decode(), end + 2 + size + 2
    return False
