"""The environment of a test: time and threads. A deployed mesh has those of this machine, a mesh in memory its own."""

from __future__ import annotations

import time
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator


class Environment(Protocol):
    """The time in which a mesh works, and threads that call it."""

    def now(self) -> datetime:
        """The current time in UTC."""

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back."""

    def sleep(self, seconds: float) -> None:
        """Lets this time pass."""

    def threads(self, count: int) -> Executor:
        """Runs calls at the same time."""


class Machine:
    """The environment of this machine."""

    def now(self) -> datetime:
        """See `Environment`."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """See `Environment`."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """See `Environment`."""
        time.sleep(seconds)

    def threads(self, count: int) -> Executor:
        """See `Environment`."""
        return ThreadPoolExecutor(count)


_active: list[Environment] = [Machine()]


def environment() -> Environment:
    """The environment of the mesh that is tested."""
    return _active[-1]


def now() -> datetime:
    """The current time of the mesh that is tested."""
    return environment().now()


@contextmanager
def using(other: Environment) -> Iterator[None]:
    """Tests another mesh, in its environment."""
    _active.append(other)
    try:
        yield
    finally:
        _active.remove(other)
