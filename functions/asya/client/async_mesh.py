"""A mesh and its tasks for programs with an event loop.

boto3 has no calls for event loops, so each call runs in a thread. The threads are the mesh's own, because a stream holds one
for up to 15 seconds while the gateway has nothing to say, and asyncio's pool also resolves names. A wait holds none: it
sleeps in the event loop between short calls. What to ask, and when to ask again, decide the modules of `Mesh` and `Task`.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from asya.client.events import check_not_paused
from asya.client.mesh import Mesh
from asya.client.mesh_client import THREADS
from asya.client.patience import EventReader, Patience
from asya.client.task import WAIT_SECONDS, Task
from asya.client.watch import now, poll, poll_stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from pathlib import Path
    from typing import Unpack

    from asya.client.events import Event
    from asya.client.mesh import Filters
    from asya.client.mesh_client import MeshClient
    from asya.tasks.failures import FailureGroup
    from asya.tasks.listing import TimelineEntry
    from asya.tasks.view import TaskView

P = ParamSpec("P")
T = TypeVar("T")


class _Threads:
    """The threads in which calls run. They end with the program, or when nothing refers to them."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="asya")

    async def run(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Make a call, with the context of its caller."""
        bound = partial(copy_context().run, call, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(self._executor, bound)

    async def steps(self, items: Iterator[T]) -> AsyncIterator[T]:
        """Yield the items of an iterator whose steps call the mesh."""
        end = object()
        while (item := await self.run(next, items, end)) is not end:
            yield item  # type: ignore[misc]


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
        self._threads = _Threads()

    async def send(
        self, actor: str, payload: object, *, then: str | Sequence[str] = (), task_id: str | None = None
    ) -> AsyncTask:
        """Send a payload to an actor, and return the task, as `Mesh.send`."""
        mesh = await self._mesh()
        return self._task(await self._threads.run(mesh.send, actor, payload, then=then, task_id=task_id))

    async def call(
        self, tool: str, arguments: object = None, /, *, idempotency_key: str | None = None, **named: object
    ) -> AsyncTask:
        """Start the task of a tool, and return the task, as `Mesh.call`."""
        mesh = await self._mesh()
        call = partial(mesh.call, tool, arguments, idempotency_key=idempotency_key, **named)
        return self._task(await self._threads.run(call))

    async def task(self, task_id: str) -> AsyncTask:
        """Return the task of an id. The task need not exist yet."""
        return self._task((await self._mesh()).task(task_id))

    async def tasks(self, **filters: Unpack[Filters]) -> AsyncIterator[AsyncTask]:
        """Yield the tasks that the caller may see, newest first, as `Mesh.tasks`."""
        async for task in self._threads.steps((await self._mesh()).tasks(**filters)):
            yield self._task(task)

    async def failures(self, **filters: Unpack[Filters]) -> list[FailureGroup]:
        """Return the failed tasks in groups by actor and error, most tasks first, as `Mesh.failures`."""
        mesh = await self._mesh()
        return await self._threads.run(partial(mesh.failures, **filters))

    def _task(self, task: Task) -> AsyncTask:
        return AsyncTask(task, self._threads)

    async def _mesh(self) -> Mesh:
        async with self._lock:
            if self._selected is None:
                self._selected = await self._threads.run(self._select)
            return self._selected


@dataclass(frozen=True)
class AsyncTask:
    """One task of a mesh, as `Task`. Its calls are awaited."""

    _task: Task
    _threads: _Threads = field(repr=False, compare=False)

    @property
    def id(self) -> str:
        """The id of the task."""
        return self._task.id

    async def view(self) -> TaskView:
        """Return what the mesh knows of the task now, as `Task.view`."""
        return await self._threads.run(self._task.view)

    async def wait(self, timeout: float = WAIT_SECONDS) -> AsyncTask:
        """Wait for the end of the task, and return the task, as `Task.wait`."""
        client, patience = self._task._client, Patience(self.id, timeout, now())
        while (pause := patience.after(await self._threads.run(poll, client, self.id), now())) is not None:
            await asyncio.sleep(pause)
        check_not_paused(patience.view)
        return self

    @overload
    async def result(self) -> Any: ...
    @overload
    async def result(self, kind: type[T]) -> T: ...
    async def result(self, kind: type[Any] | None = None) -> Any:
        """Return the payload with which the task succeeded, as `Task.result`."""
        return await self._threads.run(self._task.result, kind)  # type: ignore[arg-type]

    async def events(self, timeout: float = WAIT_SECONDS) -> AsyncIterator[Event]:
        """Yield the events of the task as they come, as `Task.events`."""
        client, reader = self._task._client, EventReader(self.id, timeout, now())
        while not reader.is_over:
            answer = await self._threads.run(poll_stream, client, self.id, reader.cursor)
            for event in reader.after(answer, now()):
                yield event
            if reader.pause and not reader.is_over:
                await asyncio.sleep(reader.pause)

    async def timeline(self) -> list[TimelineEntry]:
        """Return every attempt at every hop with its times, first to last."""
        return await self._threads.run(self._task.timeline)

    async def children(self) -> AsyncIterator[AsyncTask]:
        """Yield the tasks that it fanned out into, newest first."""
        async for task in self._threads.steps(self._task.children()):
            yield AsyncTask(task, self._threads)

    async def cancel(self) -> None:
        """Cancel the task, as `Task.cancel`."""
        await self._threads.run(self._task.cancel)

    async def resume(self, answers: object, *, since: str | None = None) -> AsyncTask:
        """Answer the pause of the task, and return the task, as `Task.resume`."""
        await self._threads.run(self._task.resume, answers, since=since)
        return self

    async def dismiss(self, reason: str) -> AsyncTask:
        """Say that the failure of the task needs no replay, as `Task.dismiss`."""
        await self._threads.run(self._task.dismiss, reason)
        return self

    async def replay(
        self,
        hop: int | None = None,
        *,
        checkpoint: int | None = None,
        failed_only: bool = False,
        force: bool = False,
        key: str = "",
    ) -> AsyncTask:
        """Start a new task from a kept copy of an envelope, and return the new task, as `Task.replay`."""
        replay = partial(self._task.replay, hop, checkpoint=checkpoint, failed_only=failed_only, force=force, key=key)
        return AsyncTask(await self._threads.run(replay), self._threads)
