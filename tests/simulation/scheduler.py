"""Time and turns: every process of the simulated cloud runs on one thread, one at a time, in the order of virtual time.

A process gives up its turn only where it waits (at each call of a service, above all). Which of several goes first follows from how
long their waits are drawn to be: so a seed fixes every interleaving.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from greenlet import getcurrent, greenlet

START_TIME = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


class StalledError(RuntimeError):
    """The simulation does not come to rest."""


@dataclass
class Scheduler:
    """A virtual clock and what is to happen when.

    Attributes:
        seconds: since the beginning.
        limit: turns that may be taken; more of them mean that the mesh does not come to rest.
        is_over: nothing runs any more; what is unwound now may do no more than that.
    """

    limit: int = 200_000
    seconds: float = 0.0
    turns: int = 0
    is_over: bool = False
    _waiting: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=count)
    _hub: greenlet = field(default_factory=getcurrent)

    @property
    def now(self) -> datetime:
        """The virtual time of day."""
        return START_TIME + timedelta(seconds=self.seconds)

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        """Do something later, on the scheduler's own turn: it must not wait."""
        heapq.heappush(self._waiting, (self.seconds + max(0.0, seconds), next(self._numbers), do))

    def start(self, body: Callable[[], None], delay: float = 0.0) -> None:
        """Run something that may wait."""
        worker = greenlet(body, parent=self._hub)
        self.after(delay, worker.switch)

    def wait(self, seconds: float) -> None:
        """Let others take their turns until so much time has passed."""
        worker = getcurrent()
        if worker is self._hub:
            raise RuntimeError("only what was started by the scheduler can wait")
        self.after(seconds, worker.switch)
        self._hub.switch()

    def stop(self) -> None:
        """Take no more turns after this one."""
        self.is_over = True

    def run(self) -> None:
        """Take turns until nothing is left to happen, or until it is stopped.

        Raises:
            StalledError: if that takes too many turns.
        """
        while self._waiting and not self.is_over:
            self.turns += 1
            if self.turns > self.limit:
                self.is_over = True
                raise StalledError(
                    f"after {self.turns} turns and {self.seconds:.0f} virtual seconds there is still no rest"
                )
            at, _, do = heapq.heappop(self._waiting)
            self.seconds = max(self.seconds, at)
            do()
