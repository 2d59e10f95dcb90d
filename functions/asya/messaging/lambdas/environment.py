"""What a process takes from outside itself beside AWS: the time, chance, and whether it may use threads.

Entry points are given one of these and pass on what it says; nothing below them looks at a clock or makes anything up.
So a test can run the whole mesh on one thread, with a clock and a chance of its own.
"""

import random
import time
from datetime import UTC, datetime
from typing import Protocol
from uuid import uuid4

from asya.runtime.time_limit import Timer, WallTimer


class Environment(Timer, Protocol):
    """The time, chance and threads of one process."""

    @property
    def is_threaded(self) -> bool:
        """Whether senders and reporters may work in threads of their own, beside the handler."""

    def now(self) -> datetime:
        """The time of day, in UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait, at least half as long and at most so long: those who were refused together shall not return together."""

    def random(self) -> float:
        """A number in [0, 1), each as likely as any other."""

    def new_span(self) -> str:
        """The id of a trace span: 16 hexadecimal digits."""


class RealEnvironment(WallTimer):
    """The machine's clock, real chance and threads."""

    is_threaded = True

    def now(self) -> datetime:
        """See `Environment`."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """See `Environment`."""
        time.sleep(seconds * random.uniform(0.5, 1.0))

    def random(self) -> float:
        """See `Environment`."""
        return random.random()

    def new_span(self) -> str:
        """See `Environment`."""
        return uuid4().hex[:16]


REAL = RealEnvironment()
