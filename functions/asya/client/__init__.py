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
    from asya.client.errors import MeshError
    from asya.client.mesh import Mesh
    from asya.client.task import Task

__all__ = ["AsyncMesh", "AsyncTask", "Mesh", "MeshError", "Task"]

_MODULES = {"Mesh": "mesh", "Task": "task", "AsyncMesh": "async_mesh", "AsyncTask": "async_mesh", "MeshError": "errors"}


def __getattr__(name: str) -> Any:
    """Import an entry point when it is first used: the AWS SDK takes a third of a second, and errors need none of it."""
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
