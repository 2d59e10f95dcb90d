"""The roles of a simulated mesh: the id of a role says whose it is."""

_PREFIX = "AROA"


def role_id(function: str) -> str:
    """The id of the role of an actor or of a system function, as in a `SenderId`."""
    return f"{_PREFIX}{function.upper()}"


class ListedRoles:
    """The list of roles, which a deployment writes before any function exists; see `RoleList`."""

    def function_of(self, role_id: str) -> str | None:
        """The function of a role; None for a role of strangers."""
        return role_id.removeprefix(_PREFIX).lower() if role_id.startswith(_PREFIX) else None

    def is_listed(self, role_id: str) -> bool:
        """Whether the role is of this mesh."""
        return self.function_of(role_id) is not None

    def is_complete(self) -> bool:
        """Whether the list has all roles."""
        return True
