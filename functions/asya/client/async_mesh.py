"""A mesh and its tasks for programs with an event loop.

boto3 has no calls for event loops, so each call runs in a thread of asyncio's pool. A wait holds no thread: it sleeps in the event
loop between short calls. A stream holds one while the gateway has nothing to say, 15 seconds at most.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, overload

from asya.client.ends import check_not_paused, is_over
from asya.client.errors import MeshError
from asya.client.mesh import Mesh
from asya.client.task import WAIT_SECONDS, Task
from asya.client.watch import POLL_SECONDS, Patience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from pathlib import Path

    from asya.client.events import Event
    from asya.client.mesh_client import MeshClient
    from asya.tasks.timeline import TimelineEntry
    from asya.tasks.view import TaskView

T = TypeVar("T")


class AsyncMesh:
    """A deployed mesh, as `Mesh`. Its calls are awaited.

    Args:
        name, state, region, profile, client: As of `Mesh`. The mesh is looked up when it is first called.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        state: str | Path | None = None,
        region: str | None = None,
        profile: str | None = None,
        client: MeshClient | None = None,
    ) -> None:
        self._select: Callable[[], Mesh] = lambda: Mesh(
            name, state=state, region=region, profile=profile, client=client
        )
        self._selected: Mesh | None = None
        self._lock = asyncio.Lock()

    async def send(
        self, actor: str, payload: object, *, then: Sequence[str] = (), task_id: str | None = None
    ) -> AsyncTask:
        """Send a payload to an actor, and return the task, as `Mesh.send`."""
        mesh = await self._mesh()
        return AsyncTask(await asyncio.to_thread(mesh.send, actor, payload, then=then, task_id=task_id))

    async def call(self, tool: str, arguments: object = None, /, **named: object) -> AsyncTask:
        """Start the task of a tool, and return the task, as `Mesh.call`."""
        mesh = await self._mesh()
        return AsyncTask(await asyncio.to_thread(mesh.call, tool, arguments, **named))

    async def task(self, task_id: str) -> AsyncTask:
        """Return the task of an id. The task need not exist yet."""
        return AsyncTask((await self._mesh()).task(task_id))

    async def tasks(self, *, status: str | None = None) -> AsyncIterator[AsyncTask]:
        """Yield the tasks that the caller may see, newest first, as `Mesh.tasks`."""
        async for task in _steps((await self._mesh()).tasks(status=status)):
            yield AsyncTask(task)

    async def _mesh(self) -> Mesh:
        async with self._lock:
            if self._selected is None:
                self._selected = await asyncio.to_thread(self._select)
            return self._selected


@dataclass(frozen=True)
class AsyncTask:
    """One task of a mesh, as `Task`. Its calls are awaited."""

    _task: Task

    @property
    def id(self) -> str:
        """The id of the task."""
        return self._task.id

    async def view(self) -> TaskView:
        """Return what the mesh knows of the task now, as `Task.view`."""
        return await asyncio.to_thread(self._task.view)

    async def wait(self, timeout: float = WAIT_SECONDS) -> AsyncTask:
        """Wait for the end of the task, and return the task, as `Task.wait`."""
        client, patience = self._task._client, Patience(self.id, timeout, time.monotonic())
        while True:
            try:
                view = await asyncio.to_thread(client.task, self.id)
                patience.answered(view, time.monotonic())
            except MeshError as error:
                patience.failed(error, time.monotonic())
            else:
                if view is not None and is_over(view):
                    check_not_paused(view)
                    return self
            patience.check(time.monotonic())
            await asyncio.sleep(POLL_SECONDS)

    @overload
    async def result(self) -> Any: ...
    @overload
    async def result(self, kind: type[T]) -> T: ...
    async def result(self, kind: type[Any] | None = None) -> Any:
        """Return the payload with which the task succeeded, as `Task.result`."""
        return await asyncio.to_thread(self._task.result, kind)  # type: ignore[arg-type]

    async def events(self) -> AsyncIterator[Event]:
        """Yield the events of the task as they come, as `Task.events`."""
        async for event in _steps(self._task.events()):
            yield event

    async def timeline(self) -> list[TimelineEntry]:
        """Return every attempt at every hop with its times, first to last."""
        return await asyncio.to_thread(self._task.timeline)

    async def children(self) -> AsyncIterator[AsyncTask]:
        """Yield the tasks that it fanned out into, newest first."""
        async for task in _steps(self._task.children()):
            yield AsyncTask(task)

    async def cancel(self) -> None:
        """Cancel the task, as `Task.cancel`."""
        await asyncio.to_thread(self._task.cancel)

    async def resume(self, answers: object) -> AsyncTask:
        """Answer the pause of the task, and return the task, as `Task.resume`."""
        await asyncio.to_thread(self._task.resume, answers)
        return self

    async def replay(self, hop: int | None = None, *, failed_only: bool = False) -> AsyncTask:
        """Start a new task from a kept copy of an envelope, and return the new task, as `Task.replay`."""
        return AsyncTask(await asyncio.to_thread(self._task.replay, hop, failed_only=failed_only))


async def _steps(items: Iterator[T]) -> AsyncIterator[T]:
    """Yield the items of an iterator whose steps call the mesh."""
    end = object()
    while (item := await asyncio.to_thread(next, items, end)) is not end:
        yield item  # type: ignore[misc]
