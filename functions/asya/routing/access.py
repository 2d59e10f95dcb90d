"""Who may do what at the gateway (`protocol §13`, owner and operators)."""

import re
from dataclasses import dataclass

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable

_ASSUMED_ROLE = re.compile(r"arn:([^:]+):sts::(\d+):assumed-role/([^/]+)/.*")
_SYSTEM_FUNCTIONS = (names.DISPATCH, names.COMPLETION, names.RECONCILE, names.DLQ)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who signed a request, as API Gateway says: the ARN, and the user id (`principal:session` for a role)."""

    arn: str
    user_id: str


@dataclass(frozen=True, slots=True)
class Caller:
    """An identity in the mesh's eyes.

    Attributes:
        principal: the id that tasks are owned by: of the user, or of the role whoever assumed it.
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
        self._operators = tuple(_as_pattern(operator) for operator in table.operators)

    def caller(self, identity: Identity) -> Caller:
        """Who this is. A mesh that names no operators takes everybody who may call it at all for one, but its functions."""
        role = _ASSUMED_ROLE.fullmatch(identity.arn)
        is_function = role is not None and role[2] == self._account and role[3] in self._roles
        return Caller(
            principal=identity.user_id.partition(":")[0],
            is_mesh_function=is_function,
            is_operator=not is_function and (not self._operators or self._is_named(identity.arn)),
        )

    def _is_named(self, arn: str) -> bool:
        forms = {arn, _role_arn(arn)}
        return any(pattern.fullmatch(form) for pattern in self._operators for form in forms)


def function_roles(table: MeshTable, region: str) -> frozenset[str]:
    """The names of the roles that the mesh's actors and system functions run under."""
    return frozenset(names.role_name(table.namespace, name, region) for name in (*table.actors, *_SYSTEM_FUNCTIONS))


def _role_arn(arn: str) -> str:
    """The ARN of the role behind a session, as a mesh file names it; an ARN of anything else stays. Sessions know no paths."""
    role = _ASSUMED_ROLE.fullmatch(arn)
    return f"arn:{role[1]}:iam::{role[2]}:role/{role[3]}" if role else arn


def _as_pattern(operator: str) -> re.Pattern[str]:
    """`*` stands for anything; a role's path is left out, because the ARNs of its sessions lack it."""
    without_path = re.sub(r"(:role/)(?:[^/]*/)+", r"\1", operator)
    return re.compile(".*".join(map(re.escape, without_path.split("*"))))
