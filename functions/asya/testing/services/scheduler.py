"""The scheduler: runs all processes of the simulated cloud on one thread, in the order of virtual time.

It keeps a log of the schedule.
"""

import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count, islice
from typing import Any

from greenlet import getcurrent, greenlet

from asya.testing.errors import TestKitError

MAX_LINES = 20_000


@dataclass(frozen=True, slots=True)
class Noted:
    """One line of the log: its time, its process and its text."""

    seconds: float
    source: str
    text: str

    def __str__(self) -> str:
        """The line as text."""
        return f"{self.seconds:10.3f}  {self.source:<18} {self.text}"


@dataclass
class EventLog:
    """The latest lines, in the form `12.345  infer/2    sqs SendMessageBatch post: …`."""

    noted: deque[Noted] = field(default_factory=lambda: deque(maxlen=MAX_LINES))
    _count: int = 0
    _hashed: int = 0
    _digest: Any = field(default_factory=sha256)

    def note(self, seconds: float, source: str, text: str) -> None:
        """Add a line."""
        if self._count - self._hashed == MAX_LINES:
            self._hash()  # before the oldest line goes
        self.noted.append(Noted(seconds, source, text))
        self._count += 1

    def _hash(self) -> None:
        """Hash the lines that are not hashed yet. Few ask for the digest, and texts take longer than the lines themselves."""
        new = self._count - self._hashed
        for line in islice(self.noted, len(self.noted) - new, None):
            self._digest.update(str(line).encode("utf-8", "backslashreplace"))
        self._hashed = self._count

    @property
    def lines(self) -> list[str]:
        """The lines as texts."""
        return list(map(str, self.noted))

    @property
    def numbered(self) -> Iterator[tuple[int, Noted]]:
        """The lines with the number of each one since the start."""
        return enumerate(self.noted, self._count - len(self.noted))

    def about(self, text: str) -> Iterator[str]:
        """Return the lines that contain a text."""
        return (line for line in self.lines if text in line)

    @property
    def digest(self) -> str:
        """A hash of all lines; equal histories have equal digests."""
        self._hash()
        return str(self._digest.hexdigest())


START_TIME = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


class StalledError(RuntimeError):
    """The simulation does not finish within its limit of turns."""


@dataclass
class Scheduler:
    """A virtual clock with a queue of functions.

    Attributes:
        limit: the maximal number of turns; a mesh that needs more does not finish.
        seconds: virtual seconds since the start.
        start_time: the virtual time of the start.
        is_over: whether the simulation has ended; processes then only unwind.
        at_work: the number of processes that were started and have not ended.
    """

    limit: int = 200_000
    seconds: float = 0.0
    start_time: datetime = START_TIME
    turns: int = 0
    is_over: bool = False
    at_work: int = 0
    _waiting: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=count)
    # Only during `run`: a greenlet must not outlive its thread.
    _hub: greenlet | None = None
    _is_done: Callable[[], bool] = lambda: False
    _until: float = float("inf")
    _thread: threading.Thread = field(default_factory=threading.current_thread)
    _processes: set[greenlet] = field(default_factory=set)

    @property
    def now(self) -> datetime:
        """The current virtual time."""
        return self.at(self.seconds)

    def at(self, seconds: float) -> datetime:
        """The virtual time of a number of virtual seconds."""
        return self.start_time + timedelta(seconds=seconds)

    @property
    def is_in_process(self) -> bool:
        """Whether the caller is a process, which may wait."""
        return getcurrent() in self._processes

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to happen."""
        return not self._waiting

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        """Schedule a function that does not wait."""
        heapq.heappush(self._waiting, (self.seconds + max(0.0, seconds), next(self._numbers), do))

    def start(self, body: Callable[[], None], delay: float = 0.0) -> None:
        """Start a process: a function that may wait."""
        self.at_work += 1
        self.after(delay, lambda: self._switch_to(greenlet(lambda: self._work(body))))

    def _work(self, body: Callable[[], None]) -> None:
        process = getcurrent()
        self._processes.add(process)
        try:
            body()
        finally:
            self._processes.discard(process)
            self.at_work -= 1

    def _switch_to(self, process: greenlet) -> None:
        assert self._hub is not None
        process.parent = self._hub
        process.switch()

    def wait(self, seconds: float) -> None:
        """Yield to other processes until this time has passed."""
        if not self.is_in_process:
            raise RuntimeError("only a function of `start` may wait; use `start` instead of `after`")
        at = self.seconds + max(0.0, seconds)
        if self._is_next(at):
            self.turns += 1
            self.seconds = at
            return
        process = getcurrent()
        self.after(seconds, lambda: self._switch_to(process))
        assert self._hub is not None  # a process runs only in `run`
        self._hub.switch()

    def _is_next(self, at: float) -> bool:
        """Whether the present process would go on at this time before anything else happens."""
        return (
            at <= self._until
            and self.turns < self.limit
            and not self.is_over
            and (not self._waiting or at < self._waiting[0][0])
            and not self._is_done()
        )

    def stop(self) -> None:
        """End the simulation after this turn."""
        self.is_over = True

    def run(self, is_done: Callable[[], bool] = lambda: False, until: float = float("inf")) -> None:
        """Run functions until the queue is empty or the simulation has ended.

        Args:
            is_done: asked before each turn; true ends this call, and the next one continues.
            until: virtual seconds; no later function runs, and the clock stands there if none is left before.

        Raises:
            StalledError: if the functions exceed the limit of turns.
            TestKitError: processes wait in another thread, and only there they can go on.
        """
        before = self._hub, self._is_done, self._until
        self._hub, self._is_done, self._until = self._adopt(), is_done, until
        try:
            self._run(is_done, until)
        finally:
            self._hub, self._is_done, self._until = before

    def _adopt(self) -> greenlet:
        """The calling greenlet, to which the processes return."""
        thread = threading.current_thread()
        if thread is not self._thread and self._processes:
            raise TestKitError(
                f"thread {self._thread.name!r} left {len(self._processes)} calls of this mesh unfinished, and thread "
                f"{thread.name!r} cannot finish them: let the mesh rest in the first one, for example by mesh.travel(seconds=1)"
            )
        self._thread = thread
        return getcurrent()

    def _run(self, is_done: Callable[[], bool], until: float) -> None:
        while self._waiting and not self.is_over and not is_done():
            if self._waiting[0][0] > until:
                self.seconds = max(self.seconds, until)
                return
            self.turns += 1
            if self.turns > self.limit:
                self.is_over = True
                raise StalledError(
                    f"after {self.turns} turns and {self.seconds:.0f} virtual seconds the mesh is still at work"
                )
            at, _, do = heapq.heappop(self._waiting)
            self.seconds = max(self.seconds, at)
            do()
