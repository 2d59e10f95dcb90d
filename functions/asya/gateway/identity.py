"""Reads the caller from an event of API Gateway: its IAM identity, or the claims of a JWT (`protocol §13`).

API Gateway checks signature, issuer, audience and expiry of a JWT: `asya_infra.constructs.gateway.http_api` declares
that. It passes the claims as text: the list `["a", "b c"]` becomes `[a b c]`, which is ambiguous. This module reads
issuer and subject there, and the other claims from the token itself, but only if the token is the one that API
Gateway has verified. `asya.gateway.access` decides what the holder may do.
"""

import base64
import binascii
from collections.abc import Mapping

import msgspec

from asya.gateway.access import IamIdentity, TokenIdentity
from asya.protocol.api_errors import ApiError

# ASCII characters, as in OpenID Connect. Every record of the owner contains the subject.
SUBJECT_LIMIT = 255
# Claims whose text is a space-separated list by their standards.
_LIST_CLAIMS = frozenset({"scope", "scp"})
_TOKEN_PARTS = 3  # header, payload, signature


def token_identity(verified: Mapping[str, object], authorization: str) -> TokenIdentity | None:
    """Read the identity in a verified token; None if its issuer or subject is invalid.

    Args:
        verified: the claims in the event of API Gateway.
        authorization: the header `Authorization`, with the token.

    Raises:
        ApiError: 401 if the header may hold more than one token: API Gateway verified one of them at most.
    """
    issuer, subject = verified.get("iss"), verified.get("sub")
    if not (isinstance(issuer, str) and issuer and isinstance(subject, str) and _is_valid_subject(subject)):
        return None
    claims = _token_payload(_only_token(authorization))
    if (claims.get("iss"), claims.get("sub")) != (issuer, subject):
        claims = {}  # this is not the verified token, so its claims do not count
    return TokenIdentity(issuer, subject, {name: _values(name, value) for name, value in claims.items()})


def _is_valid_subject(subject: str) -> bool:
    return 0 < len(subject) <= SUBJECT_LIMIT and subject.isascii() and subject.isprintable()


def _only_token(authorization: str) -> str:
    """The token in a header such as `Bearer x.y.z`; API Gateway also takes it without a scheme, and joins headers by commas."""
    words = authorization.split()
    is_scheme_first = len(words) == 2 and "." not in words[0]
    if "," in authorization or not (len(words) <= 1 or is_scheme_first):
        raise ApiError(401, "unauthorized", "send one token: Authorization: Bearer TOKEN", "Authorization")
    return words[-1] if words else ""


def _token_payload(token: str) -> dict[str, object]:
    """Decode the claims of a token; empty if it is unreadable."""
    parts = token.split(".")
    if len(parts) != _TOKEN_PARTS:
        return {}
    try:
        content = base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(content, type=dict[str, object])
    except (binascii.Error, ValueError, RecursionError):
        return {}


def _values(name: str, value: object) -> tuple[str, ...]:
    """The values of a claim as text; objects have no values."""
    if isinstance(value, str):
        return tuple(value.split()) if name in _LIST_CLAIMS else (value,)
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if isinstance(value, int):
        return (str(value),)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


class Iam(msgspec.Struct, rename="camel"):
    """The signer of a request."""

    user_arn: str | None = None
    user_id: str | None = None


class Jwt(msgspec.Struct):
    """The verified token of a request."""

    claims: dict[str, object] = {}


class Authorizer(msgspec.Struct):
    """The results of API Gateway's authorizers."""

    iam: Iam | None = None
    jwt: Jwt | None = None


def identity_of(authorizer: Authorizer | None, headers: Mapping[str, str]) -> IamIdentity | TokenIdentity | None:
    """Read the identity of the caller; None if it is missing or ambiguous.

    Args:
        authorizer: the results of API Gateway's authorizers.
        headers: the headers of the request, names in lower case.

    Raises:
        ApiError: 401 if API Gateway verified a token and the request may hold another.
    """
    if authorizer is None or (authorizer.iam is not None and authorizer.jwt is not None):
        return None
    if authorizer.jwt is not None:
        return token_identity(authorizer.jwt.claims, headers.get("authorization", ""))
    iam = authorizer.iam
    return IamIdentity(iam.user_arn, iam.user_id) if iam is not None and iam.user_arn and iam.user_id else None
