"""The clock of the command: what ages count from, and how long it waits.

Every module of the command asks here and nowhere else, so one clock from outside holds for all of them.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Clock:
    """The clock of the machine. Another one has its methods."""

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the time of a clock that never goes back, in seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


_clock = Clock()


@contextmanager
def using(clock: Clock) -> Iterator[None]:
    """Let the whole command, with all of its threads, read another clock within the block."""
    global _clock  # noqa: PLW0603 - a thread that draws a display reads it too
    before, _clock = _clock, clock
    try:
        yield
    finally:
        _clock = before


def now() -> datetime:
    """Return the time in UTC."""
    return _clock.now()


def monotonic() -> float:
    """Return the time of a clock that never goes back, in seconds."""
    return _clock.monotonic()


def sleep(seconds: float) -> None:
    """Wait."""
    _clock.sleep(seconds)
