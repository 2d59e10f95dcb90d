"""The queues, functions and sweeps of a mesh that alarms and dashboards show."""

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya_infra.mesh import Mesh
from asya_infra.permissions.spark import heavy_actors

# The actors and system functions with a queue that the mesh brings along.
CREW = (
    *(names.SINK, names.SUMP, names.PAUSE, names.RESUME, names.CHECKPOINT, names.FAN_IN, names.INDEX, names.WAIT),
    *(names.DISPATCH, names.COMPLETION, names.PUSH, names.TRIGGERS, *names.REPORT_QUEUES),
)


def queue_actors(table: MeshTable) -> list[str]:
    """Return the actors and system functions whose queue has messages for them, sorted; the crew comes last.

    The queues of reports are none of them: `report_alarms` watches those.
    """
    system = [names.DISPATCH, names.COMPLETION] if heavy_actors(table) else []
    system += [names.PUSH] if table.tools else []
    system += [names.TRIGGERS] if table.triggers else []
    return sorted((*table.actors, *system), key=lambda actor: (names.is_reserved(actor), actor))


def sweeps(table: MeshTable) -> dict[str, str]:
    """Return the functions that sweep the mesh on a schedule, each with the work that stops without it."""
    return {
        names.TASK_SWEEP: "tasks past their deadline stay open"
        + (", and schedules start nothing" if table.triggers else ""),
        names.PAUSE_SWEEP: "an unfinished resume is not repeated, and what waits for a time stays",
        names.FAN_IN_SWEEP: "overdue sets may stay open",
        names.DLQ: "dead letters are not reported",
        **({names.RECONCILE: "lost job runs are not repaired"} if heavy_actors(table) else {}),
    }


def unqueued_functions(mesh: Mesh) -> list[str]:
    """Return the functions without a queue: a message does not come again after their errors.

    x-roles is none of them: its failure fails the deployment that called it. Nor are x-logs and x-operations: they change nothing,
    and an operator sees their failure.
    """
    gateway = [names.GATEWAY_INGEST, names.GATEWAY_API, names.GATEWAY_STREAM]
    gateway += [names.GATEWAY_LIVE] if mesh.file.gateway.streaming == "adapter" else []
    gateway += [names.WEBHOOKS] if mesh.table.webhooks else []
    gateway += [names.PUSH_FEED] if mesh.table.tools else []
    return [*gateway, *sweeps(mesh.table)]
