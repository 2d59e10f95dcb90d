"""Who makes a request, read from what API Gateway has found out (payload format 2.0, `requestContext.authorizer`).

API Gateway hands a token's claims over as text: a list `["a", "b c"]` comes as `[a b c]`, which could mean other values as
well. Who somebody is, is read there; what lists they are on is read from the token itself, which API Gateway has checked.
"""

import base64
import binascii
from collections.abc import Mapping

import msgspec

from asya.gateway.access import IamIdentity, TokenIdentity

# OpenID Connect's: so many ASCII characters. The subject becomes part of every record its owner makes.
SUBJECT_LIMIT = 255
# Lists of words by their own standards, though they are texts.
_WORDS = frozenset({"scope", "scp"})
_PARTS = 3


class Iam(msgspec.Struct, rename="camel"):
    """Of a signed request."""

    user_arn: str | None = None
    user_id: str | None = None


class Jwt(msgspec.Struct):
    """Of a request with a token."""

    claims: dict[str, object] = {}


class Authorizer(msgspec.Struct):
    """What API Gateway's authorizers say."""

    iam: Iam | None = None
    jwt: Jwt | None = None


def identity_of(authorizer: Authorizer | None, headers: Mapping[str, str]) -> IamIdentity | TokenIdentity | None:
    """Who it is; None if API Gateway does not say, or says it in a way that could mean two people.

    Args:
        headers: of the request, names in lower case.
    """
    if authorizer is None or (authorizer.iam is not None and authorizer.jwt is not None):
        return None
    if authorizer.jwt is not None:
        return _of_token(authorizer.jwt.claims, headers.get("authorization", ""))
    iam = authorizer.iam
    return IamIdentity(iam.user_arn, iam.user_id) if iam is not None and iam.user_arn and iam.user_id else None


def _of_token(checked: Mapping[str, object], authorization: str) -> TokenIdentity | None:
    issuer, subject = checked.get("iss"), checked.get("sub")
    if not (isinstance(issuer, str) and issuer and isinstance(subject, str) and _can_own(subject)):
        return None
    said = _payload(authorization)
    if (said.get("iss"), said.get("sub")) != (issuer, subject):
        said = {}  # not the token that was checked: whoever it is, no list they are on counts
    return TokenIdentity(issuer, subject, {name: _values(name, value) for name, value in said.items()})


def _can_own(subject: str) -> bool:
    return 0 < len(subject) <= SUBJECT_LIMIT and subject.isascii() and subject.isprintable()


def _payload(authorization: str) -> dict[str, object]:
    """What a token says; nothing if it cannot be read."""
    parts = authorization.rpartition(" ")[2].split(".")
    if len(parts) != _PARTS:
        return {}
    try:
        content = base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(content, type=dict[str, object])
    except (binascii.Error, ValueError, RecursionError):
        return {}


def _values(name: str, value: object) -> tuple[str, ...]:
    """The values that a claim has, as text; structures have none."""
    if isinstance(value, str):
        return tuple(value.split()) if name in _WORDS else (value,)
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if isinstance(value, int):
        return (str(value),)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
