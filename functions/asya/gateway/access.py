"""Who calls the gateway, and what the caller may do (`protocol §13`, owner and operators).

A caller is either the IAM principal that signed the request, or the subject of a token (JWT) that API Gateway has verified.
The two never collide: an IAM principal id has no colon, and the principal of a token starts with `jwt:`.

API Gateway checks signature, issuer, audience and expiry of a JWT: `asya_infra.constructs.gateway.http_api` declares
that. It passes the claims as text: the list `["a", "b c"]` becomes `[a b c]`, which is ambiguous. This module reads
issuer and subject there, and the other claims from the token itself, but only if the token is the one that API
Gateway has verified.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec import UNSET

from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import MeshTable

_ASSUMED_ROLE = re.compile(r"arn:([^:]+):sts::(\d+):assumed-role/([^/]+)/.*")
_CLAIM = re.compile(r"(?!arn:)([^=*]+)=(.+)")


@dataclass(frozen=True, slots=True)
class IamIdentity:
    """The signer of a request: the ARN, and the user id (`principal:session` for a role)."""

    arn: str
    user_id: str


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """The identity in a token that API Gateway has verified.

    Attributes:
        issuer, subject: identify the caller together; equal subjects of different issuers are different callers.
        claims: the values of each claim.
    """

    issuer: str
    subject: str
    claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller of the gateway.

    Attributes:
        principal: the owner of the caller's tasks: the id of the user or of the assumed role, or `jwt:{subject}#{issuer}`.
    """

    principal: str
    is_operator: bool

    def may_see(self, owner: str | None) -> bool:
        """Whether the caller may see a task of an owner; only operators see tasks without an owner."""
        return self.is_operator or (owner is not None and owner == self.principal)

    @property
    def owner_filter(self) -> str | None:
        """The owner whose tasks the caller may list; None for all owners."""
        return None if self.is_operator else self.principal


class AccessRules:
    """Recognizes the operators of a mesh.

    Args:
        table: the mesh table.
        account: the account of the mesh; equal role names in other accounts do not count.
        region: the region of the mesh.
    """

    def __init__(self, table: MeshTable, account: str, region: str) -> None:
        self._account = account
        self._roles = mesh_roles(table, region)
        self._has_tenants = table.is_fair_by_owner
        self._tenant_claim = None if table.gateway.tenant_claim is UNSET else table.gateway.tenant_claim
        claims = [(operator, operator_claim(operator)) for operator in table.operators]
        self._names_operators = bool(claims)
        self._operators = tuple(_as_pattern(_without_path(operator)) for operator, claim in claims if claim is None)
        self._operator_claims = tuple((claim[0], _as_pattern(claim[1])) for _, claim in claims if claim is not None)

    def caller(self, identity: IamIdentity | TokenIdentity) -> Caller:
        """Identify a caller.

        If the mesh file names no operators, every signer is an operator, except the roles of the mesh: they are never one. The
        holder of a token is an operator only by a claim that the mesh file names.
        """
        if isinstance(identity, TokenIdentity):
            return Caller(
                # The mesh file rejects issuers with a `#`, so the last `#` separates subject and issuer.
                principal=f"jwt:{identity.subject}#{identity.issuer}",
                is_operator=self._has_operator_claim(identity),
            )
        role = _ASSUMED_ROLE.fullmatch(identity.arn)
        is_of_mesh = role is not None and role[2] == self._account and role[3] in self._roles
        return Caller(
            principal=identity.user_id.partition(":")[0],
            is_operator=not is_of_mesh and (not self._names_operators or self._is_named(identity.arn)),
        )

    def tenant(self, identity: IamIdentity | TokenIdentity | None) -> str:
        """The tenant of the tasks that a caller starts: the claim that the mesh file names, or the principal.

        Empty without a caller, and in a mesh that asks for none. A token without the claim, or with several values, is a
        tenant of its own. No principal begins as a claim does.
        """
        if identity is None or not self._has_tenants:
            return ""
        if isinstance(identity, TokenIdentity) and self._tenant_claim is not None:
            values = identity.claims.get(self._tenant_claim, ())
            if len(values) == 1:
                return f"claim:{values[0]}#{identity.issuer}"
        return self.caller(identity).principal

    def _is_named(self, arn: str) -> bool:
        return _matches(self._operators, {arn, _role_arn(arn)})

    def _has_operator_claim(self, identity: TokenIdentity) -> bool:
        claims = {**identity.claims, "iss": (identity.issuer,), "sub": (identity.subject,)}
        return any(_matches((pattern,), claims.get(name, ())) for name, pattern in self._operator_claims)


def mesh_roles(table: MeshTable, region: str) -> frozenset[str]:
    """The names of the roles of the mesh's actors, job runs and system functions."""
    jobs = (names.job_role(name) for name, actor in table.actors.items() if actor.kind == "spark")
    functions = (*table.actors, *jobs, *names.SYSTEM_FUNCTIONS, names.job_role(names.INDEX))
    return frozenset(names.role_name(table.namespace, name, region) for name in functions)


def operator_claim(operator: str) -> tuple[str, str] | None:
    """Split an operator of the form `groups=mesh-operators` into claim and value; None for an ARN."""
    match = _CLAIM.fullmatch(operator)
    return (match[1], match[2]) if match else None


def _role_arn(arn: str) -> str:
    """Convert the ARN of a session to the ARN of its role, without the path; any other ARN stays."""
    role = _ASSUMED_ROLE.fullmatch(arn)
    return f"arn:{role[1]}:iam::{role[2]}:role/{role[3]}" if role else arn


def _without_path(operator: str) -> str:
    """Remove the path of a role, because the ARNs of its sessions lack it."""
    return re.sub(r"(:role/)(?:[^/]*/)+", r"\1", operator)


def _as_pattern(operator: str) -> re.Pattern[str]:
    """Compile a pattern; `*` matches any text, line feeds too."""
    return re.compile(".*".join(map(re.escape, operator.split("*"))), re.DOTALL)


def _matches(patterns: Iterable[re.Pattern[str]], values: Iterable[str]) -> bool:
    return any(pattern.fullmatch(value) for pattern in patterns for value in values)


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
