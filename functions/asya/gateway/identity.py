"""Reads the identity of a caller from an API Gateway event (payload format 2.0, `requestContext.authorizer`)."""

from collections.abc import Mapping

import msgspec

from asya.gateway.access import IamIdentity, TokenIdentity
from asya.gateway.jwt_claims import token_identity


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
