"""The environment of a process apart from AWS: clock, randomness and threads.

Entry points pass its values on, and the modules below them use no other clock or randomness. So a test can run the whole
mesh on one thread, with its own clock and randomness.
"""

import random
import time
from datetime import UTC, datetime
from typing import Protocol
from uuid import uuid4

from asya.runtime.time_limit import Timer, WallTimer


class Environment(Timer, Protocol):
    """The clock, randomness and threads of one process."""

    @property
    def is_threaded(self) -> bool:
        """Whether senders and reporters may run in their own threads."""

    def now(self) -> datetime:
        """The current time in UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait for 50 to 100 % of the given time: with jitter, so throttled callers do not retry in lockstep."""

    def random(self) -> float:
        """A uniformly distributed number in [0, 1)."""

    def new_span(self) -> str:
        """A new id of a trace span: 16 hexadecimal digits."""


class RealEnvironment(WallTimer):
    """The clock, randomness and threads of the operating system."""

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
