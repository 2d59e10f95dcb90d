"""Declares the functions that take calls and reports, and that look after tasks."""

from asya.manifest import Deployments, Function, Queues, Requests, Schedule, TableChanges, with_tools
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.starts.idempotency import STARTERS

CALL_TIMEOUT = STARTERS[names.GATEWAY_API]
"""Seconds. API Gateway waits for 30; the lease of a start exceeds this time."""

REPORT_RETENTION_DAYS = 14
"""Reports wait as long as SQS keeps messages: an outage of their function or of the tasks table loses none."""

REPORT_RECEIVES = 1000
"""The most that SQS allows. A receive that fails may be as short as the nack of the function that takes reports."""

_PUSH_TIMEOUT = 60


def _without_task_sweep(mesh: MeshTable) -> str:
    return "tasks past their deadline stay open" + (", and schedules start nothing" if mesh.triggers else "")


def _calls(name: str, entry_point: str, *, changes: bool = True) -> Function:
    """Declare a function that answers calls."""
    return Function(name=name, entry_point=entry_point, called_by=Requests(changes=changes), timeout=CALL_TIMEOUT)


FUNCTIONS = (
    _calls(names.GATEWAY_INGEST, "asya.gateway.lambdas.wiring.ingest"),
    _calls(names.GATEWAY_API, "asya.gateway.lambdas.wiring.api"),
    _calls(names.GATEWAY_STREAM, "asya.gateway.streams.wiring.stream"),
    _calls(names.OPERATIONS, "asya.gateway.operations.wiring.operations", changes=False),
    _calls(names.LOGS, "asya.gateway.operations.wiring.logs", changes=False),
    Function(
        name=names.REPORTS,
        entry_point="asya.gateway.lambdas.wiring.report_queues",
        # A window would make each report late, and most batches are full while the mesh is busy. More concurrent batches would
        # meet at the same tasks, and would take from the actors.
        called_by=Queues(
            names=names.REPORT_QUEUES,
            concurrency=20,
            receives=REPORT_RECEIVES,
            retention_days=REPORT_RETENTION_DAYS,
            has_envelopes=False,
        ),
        # Ten messages of 64 KiB have some thousand reports. After a crash of the function they come again when it has passed.
        timeout=120,
    ),
    Function(
        name=names.TASK_SWEEP,
        entry_point="asya.gateway.lambdas.wiring.deadline_sweep",
        called_by=Schedule(
            minutes=1, rule="task-sweep", checks="the deadlines of the tasks", without=_without_task_sweep
        ),
        timeout=60,
    ),
    Function(
        name=names.PUSH_FEED,
        entry_point="asya.gateway.a2a.lambdas.wiring.push_feed",
        called_by=TableChanges(),
        timeout=_PUSH_TIMEOUT,
        exists=with_tools,
    ),
    Function(
        name=names.PUSH,
        entry_point="asya.gateway.a2a.lambdas.wiring.push",
        # A client may take ten seconds for a notification. One that waits for the share of its owner counts as received: 20
        # receives last for four hours of waiting.
        called_by=Queues(batch=5, receives=20),
        timeout=_PUSH_TIMEOUT,
        exists=with_tools,
    ),
    Function(
        name=names.ROLES,
        entry_point="asya.senders.lambdas.wiring.role_listing",
        called_by=Deployments(),
        timeout=60,
    ),
)
