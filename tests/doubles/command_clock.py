"""Clocks for the command: one that stands, and one of a mesh in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asya_cli.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


@dataclass
class SetClock(Clock):
    """A clock whose time comes from the test.

    Attributes:
        read: Returns the time.
        seconds: Returns the time of the clock that never goes back.
        on_sleep: What happens while the command waits.
        slept: How long the command has waited, each time.
    """

    read: Callable[[], datetime]
    seconds: Callable[[], float] = lambda: 0.0
    on_sleep: Callable[[float], object] = lambda _: None
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return self.read()

    def monotonic(self) -> float:
        return self.seconds()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.on_sleep(seconds)
