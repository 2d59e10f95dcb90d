"""Who may do what at the gateway (`protocol §13`, owner and operators).

A caller is known in one of two ways: by the IAM principal that signed the request, or by a token (JWT) that API Gateway has
checked. The two never meet: an IAM principal id ends at its first colon, what a token's subject owns begins with `jwt:`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable

_ASSUMED_ROLE = re.compile(r"arn:([^:]+):sts::(\d+):assumed-role/([^/]+)/.*")
_CLAIM = re.compile(r"(?!arn:)([^=*]+)=(.+)")
_SYSTEM_FUNCTIONS = (names.DISPATCH, names.COMPLETION, names.RECONCILE, names.DLQ)


@dataclass(frozen=True, slots=True)
class IamIdentity:
    """Who signed a request, as API Gateway says: the ARN, and the user id (`principal:session` for a role)."""

    arn: str
    user_id: str


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """Whose token came with a request, as API Gateway has checked it.

    Attributes:
        issuer, subject: who it is: subjects of different issuers are different people, also if they are called the same.
        claims: the rest of what the token says, each with the values it has.
    """

    issuer: str
    subject: str
    claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Caller:
    """An identity in the mesh's eyes.

    Attributes:
        principal: what tasks are owned by: the id of the user, of the role whoever assumed it, or `jwt:{subject}#{issuer}`.
    """

    principal: str
    is_mesh_function: bool
    is_operator: bool

    def may_see(self, owner: str | None) -> bool:
        """Whether a task of this owner is theirs to see; ownerless ones are the operators'."""
        return self.is_operator or (owner is not None and owner == self.principal)


class AccessRules:
    """Tells the mesh's own functions and its operators from everybody else.

    Args:
        account: the account the mesh is in; a function's role of the same name elsewhere is nobody.
    """

    def __init__(self, table: MeshTable, account: str, region: str) -> None:
        self._account = account
        self._roles = function_roles(table, region)
        claims = [(operator, operator_claim(operator)) for operator in table.operators]
        self._names_operators = bool(claims)
        self._operators = tuple(_as_pattern(_without_path(operator)) for operator, claim in claims if claim is None)
        self._operator_claims = tuple((claim[0], _as_pattern(claim[1])) for _, claim in claims if claim is not None)

    def caller(self, identity: IamIdentity | TokenIdentity) -> Caller:
        """Who this is. A mesh that names no operators takes everybody for one who may sign a call, but its functions.

        Whoever comes with a token is never a function of the mesh, and an operator only by a claim that the mesh names.
        """
        if isinstance(identity, TokenIdentity):
            return Caller(
                # An issuer has no `#` in it (the mesh file sees to that): the last one is where it begins.
                principal=f"jwt:{identity.subject}#{identity.issuer}",
                is_mesh_function=False,
                is_operator=self._has_operator_claim(identity),
            )
        role = _ASSUMED_ROLE.fullmatch(identity.arn)
        is_function = role is not None and role[2] == self._account and role[3] in self._roles
        return Caller(
            principal=identity.user_id.partition(":")[0],
            is_mesh_function=is_function,
            is_operator=not is_function and (not self._names_operators or self._is_named(identity.arn)),
        )

    def _is_named(self, arn: str) -> bool:
        return _matches(self._operators, {arn, _role_arn(arn)})

    def _has_operator_claim(self, identity: TokenIdentity) -> bool:
        said = {**identity.claims, "iss": (identity.issuer,), "sub": (identity.subject,)}
        return any(_matches((pattern,), said.get(name, ())) for name, pattern in self._operator_claims)


def function_roles(table: MeshTable, region: str) -> frozenset[str]:
    """The names of the roles that the mesh's actors and system functions run under."""
    return frozenset(names.role_name(table.namespace, name, region) for name in (*table.actors, *_SYSTEM_FUNCTIONS))


def operator_claim(operator: str) -> tuple[str, str] | None:
    """Claim and value of an operator whom the mesh file names by a token's claim: `groups=mesh-operators`; None for an ARN."""
    found = _CLAIM.fullmatch(operator)
    return (found[1], found[2]) if found else None


def _role_arn(arn: str) -> str:
    """The ARN of the role behind a session, as a mesh file names it; an ARN of anything else stays. Sessions know no paths."""
    role = _ASSUMED_ROLE.fullmatch(arn)
    return f"arn:{role[1]}:iam::{role[2]}:role/{role[3]}" if role else arn


def _without_path(operator: str) -> str:
    """A role's path is left out, because the ARNs of its sessions lack it."""
    return re.sub(r"(:role/)(?:[^/]*/)+", r"\1", operator)


def _as_pattern(operator: str) -> re.Pattern[str]:
    """`*` stands for anything."""
    return re.compile(".*".join(map(re.escape, operator.split("*"))))


def _matches(patterns: Iterable[re.Pattern[str]], forms: Iterable[str]) -> bool:
    return any(pattern.fullmatch(form) for pattern in patterns for form in forms)
