"""A client of a mesh, for programs: send, call, wait, read results.

    from asya.client import Mesh

    task = Mesh("shop").send("check-orders", Order(...))
    checked = task.wait().result(Checked)

`Mesh` and `Task` are the entry points, `AsyncMesh` and `AsyncTask` the same for programs with an event loop. The command `asya`
stands on the same client. It stays out of the Lambda layer.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asya.client.async_mesh import AsyncMesh, AsyncTask
    from asya.client.errors import (
        AccessDeniedError,
        ConflictError,
        InvalidAnswersError,
        MeshError,
        NotEndedError,
        NotFoundError,
        OversizedEnvelopeError,
        RefusedError,
        TaskCanceledError,
        TaskFailedError,
        TaskPausedError,
        UnavailableError,
        UnreachableError,
    )
    from asya.client.events import Event
    from asya.client.mesh import Mesh
    from asya.client.task import Task
    from asya.contracts.errors import ContractError

__all__ = [
    "AccessDeniedError",
    "AsyncMesh",
    "AsyncTask",
    "ConflictError",
    "ContractError",
    "Event",
    "InvalidAnswersError",
    "Mesh",
    "MeshError",
    "NotEndedError",
    "NotFoundError",
    "OversizedEnvelopeError",
    "RefusedError",
    "Task",
    "TaskCanceledError",
    "TaskFailedError",
    "TaskPausedError",
    "UnavailableError",
    "UnreachableError",
]

_MODULES = {
    "Mesh": "asya.client.mesh",
    "Task": "asya.client.task",
    "AsyncMesh": "asya.client.async_mesh",
    "AsyncTask": "asya.client.async_mesh",
    "Event": "asya.client.events",
    "ContractError": "asya.contracts.errors",
}
_ERRORS = "asya.client.errors"


def __getattr__(name: str) -> Any:
    """Import an entry point when it is first used: the AWS SDK takes a third of a second, and errors need none of it."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, _ERRORS)), name)
