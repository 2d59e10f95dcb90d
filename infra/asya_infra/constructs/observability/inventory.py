"""The queues and functions of a mesh that alarms and dashboards show."""

from asya import registry
from asya.manifest import Requests, TableChanges
from asya.monitoring import Of
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya_infra.mesh import Mesh


def members(mesh: Mesh, of: str | Of) -> list[str]:
    """Return the actors or functions that a series is about, each by itself."""
    match of:
        case Of.QUEUES:
            return queue_actors(mesh.table)
        case Of.UNQUEUED:
            return unqueued_functions(mesh)
        case Of.SWEEPS:
            return list(registry.sweeps_of(mesh.table))
        case str():
            return [of]
    raise ValueError(f"{of} has no members; a series of it is one value")


def queue_actors(mesh: MeshTable) -> list[str]:
    """Return the actors and system functions whose queue has messages for them, sorted; the crew comes last.

    The queues of reports are none of them: alarms of their own watch those.
    """
    system = [name for name, (_, queues) in registry.queues_of(mesh).items() if name not in names.REPORT_QUEUES]
    return sorted((*mesh.actors, *system), key=lambda actor: (names.is_reserved(actor), actor))


def unqueued_functions(mesh: Mesh) -> list[str]:
    """Return the functions without a queue: a message does not come again after their errors.

    x-roles is none of them: its failure fails the deployment that called it. Nor are functions that only read: an operator sees
    their failure.
    """
    live = [names.GATEWAY_LIVE] if mesh.file.gateway.streaming == "adapter" else []
    callers = [(each.name, each.called_by) for each in registry.functions_of(mesh.table)]
    calls = [name for name, caller in callers if isinstance(caller, Requests) and caller.changes]
    changes = [name for name, caller in callers if isinstance(caller, TableChanges)]
    return [*calls, *live, *changes, *registry.sweeps_of(mesh.table)]
