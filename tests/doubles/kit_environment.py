"""The environment of a mesh of the test kit: virtual time, and threads that share it."""

from __future__ import annotations

import time
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar
from unittest import mock

from asya.client import watch
from tests.cloud.environment import using

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from asya.testing import Mesh
    from asya.testing.services.scheduler import Scheduler

T = TypeVar("T")
SCHEDULE = 60.0
"""Seconds between two runs of the scheduled functions."""


@dataclass
class KitEnvironment:
    """The time of a mesh in memory; see `tests.cloud.environment`."""

    kit: Mesh
    _ticked_at: float = 0.0

    def now(self) -> datetime:
        return self.kit.now

    def monotonic(self) -> float:
        return self._scheduler.seconds

    def sleep(self, seconds: float) -> None:
        if self._scheduler.is_in_process:
            self._scheduler.wait(seconds)
            return
        if self.monotonic() >= self._ticked_at + SCHEDULE:
            self._ticked_at = self.monotonic()
            self.kit.cloud.system.wake_all()
        self.kit.cloud.advance(seconds)

    def threads(self, count: int) -> Executor:
        return GreenThreads(self)

    def wait_until(self, is_done: Callable[[], bool]) -> None:
        """Lets the mesh and the threads work until a condition holds."""
        if self._scheduler.is_in_process:
            while not is_done():
                self._scheduler.wait(0.01)
            return
        with self.kit.cloud.activate():
            self._scheduler.run(is_done)

    def start(self, body: Callable[[], None]) -> None:
        """Runs this beside the caller."""
        self._scheduler.start(body)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Lets tests, handlers and commands read this time."""
        clock = SimpleNamespace(monotonic=self.monotonic, sleep=self.sleep)
        with ExitStack() as stack:
            stack.enter_context(using(self))
            stack.enter_context(mock.patch.object(watch, "time", clock))
            # Handlers note the time of their calls.
            stack.enter_context(mock.patch.object(time, "time_ns", lambda: int(self.now().timestamp() * 1e9)))
            yield

    @property
    def _scheduler(self) -> Scheduler:
        return self.kit.cloud.simulation.scheduler


class GreenFuture(Future[T]):
    """The result of a call; who waits for it lets the mesh work."""

    def __init__(self, environment: KitEnvironment) -> None:
        super().__init__()
        self._environment = environment

    def result(self, timeout: float | None = None) -> T:
        self._environment.wait_until(self.done)
        return super().result(timeout=0)


class GreenThreads(Executor):
    """Runs calls as processes of the mesh's time, all on one thread."""

    def __init__(self, environment: KitEnvironment) -> None:
        self._environment = environment
        self._futures: list[Future[Any]] = []

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future = GreenFuture[T](self._environment)

        def body() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - it is that of the call
                future.set_exception(error)

        self._futures.append(future)
        self._environment.start(body)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._environment.wait_until(lambda: all(future.done() for future in self._futures))
