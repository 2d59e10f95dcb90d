"""The roles of a simulated mesh, whose ids say whose they are, and the secrets of its keys."""

from collections.abc import Iterable

from asya.protocol.mesh_table import MeshTable
from asya.protocol.names import runner_of, table_name
from asya.protocol.task_key import SECRET_BYTES
from asya.senders.aws.key_items import KeyItems
from asya.testing.dynamo.tables import MemoryDynamo

_PREFIX = "AROA"


def role_id(function: str) -> str:
    """The id of the role of an actor, of a system function or of a step of the clock, as in a `SenderId`."""
    return f"{_PREFIX}{runner_of(function).upper()}"


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


def write_secrets(tables: MemoryDynamo, mesh: MeshTable, functions: Iterable[str] = ()) -> None:
    """Write the secrets of keys, as a deployment does before any function exists.

    Args:
        functions: further functions than the actors of the mesh.
    """
    items = KeyItems(tables, table_name(mesh.namespace, "sink"))  # type: ignore[arg-type]
    items.write(lambda: bytes(SECRET_BYTES), (*mesh.actors, *functions))
