"""A process of the simulated cloud: it lives until it dies, and each of its calls to a service may be its last."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, TypeVar

from botocore.exceptions import ClientError

from asya.runtime.time_limit import TimeLimitReached
from tests.simulation.faults import Fault, Faults

if TYPE_CHECKING:
    from tests.simulation.event_log import EventLog
    from tests.simulation.queues import Message
    from tests.simulation.scheduler import Scheduler

T = TypeVar("T")


class ProcessCrashed(BaseException):
    """Unwinds a process that is dead. Whatever swallows it: the next call raises it again."""


@dataclass
class Invocation:
    """One invocation: the messages it was given, and what it has done so far.

    Attributes:
        caused: message id → how many messages it has caused to be sent.
        unreadable: ids of messages that were found to be no envelopes.
        left: message id → what left under the envelope's own id.
        told: sets and indexes of slices that were told to have ended.
        states_queried_at: when the tasks' states were asked for, if there was an answer.
    """

    actor: str
    messages: "list[Message]"
    began: float
    effects: dict[str, int] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    departures: dict[str, str] = field(default_factory=dict)
    ended_slices: set[tuple[str, int]] = field(default_factory=set)
    states_queried_at: float | None = None


@dataclass
class Simulation:
    """What all processes share: time, chance, weather and the log."""

    scheduler: "Scheduler"
    faults: Faults
    random: Random
    log: "EventLog"


@dataclass
class Process:
    """One process, and what it takes from outside itself (`asya.messaging.lambdas.environment.Environment`).

    Attributes:
        ends_at: virtual seconds at which it is killed: its function's timeout.
        lag: seconds its own code has used that have not passed for the others yet; user code does not give up its turn.
        invocation: the current one; None between two invocations.
        crash_cause: which call of a handler ended it, if one did.
    """

    name: str
    simulation: Simulation
    is_alive: bool = True
    ends_at: float = float("inf")
    lag: float = 0.0
    invocation: "Invocation | None" = None
    crash_cause: str = ""
    _limits: list[float] = field(default_factory=list)

    is_threaded = False

    def now(self) -> datetime:
        """The process's time of day."""
        return self.simulation.scheduler.now + timedelta(seconds=self.lag)

    def monotonic(self) -> float:
        """The same in seconds."""
        return self.simulation.scheduler.seconds + self.lag

    def sleep(self, seconds: float) -> None:
        """Wait about so long."""
        self.simulation.scheduler.wait(seconds * self.simulation.random.uniform(0.5, 1.0))
        self._check()

    def random(self) -> float:
        """A number in [0, 1)."""
        return self.simulation.random.random()

    def new_span(self) -> str:
        """16 hexadecimal digits."""
        return f"{self.simulation.random.getrandbits(64):016x}"

    def run_within(self, seconds: float, run: Callable[[], T]) -> T:
        """Run user code; it is interrupted where it spends more time than it has (`spend`)."""
        self._limits.append(self.monotonic() + seconds)
        try:
            return run()
        finally:
            self._limits.pop()

    def spend(self, seconds: float) -> None:
        """User code takes its time."""
        end = self.monotonic() + seconds
        limit = min(self._limits, default=end)
        if end > limit:
            self.lag += max(0.0, limit - self.monotonic())
            raise TimeLimitReached
        self.lag += seconds

    def call(
        self,
        service: str,
        what: str,
        do: Callable[[], T],
        *,
        refused: Callable[[], Exception],
        lost: Callable[[], Exception],
        in_part: Callable[[], T] | None = None,
        repeatable: bool = True,
    ) -> T:
        """One call of a service: it takes its time, and may go wrong as `Fault` says.

        Args:
            refused: makes the error of a call that had no effect.
            lost: makes the error of a call whose answer did not come.
            in_part: does less than asked for, and says so in the answer.
            repeatable: whether the SDK repeats it by itself, with another effect, when the answer is lost.
        """
        self._check()
        simulation = self.simulation
        if self.lag:
            passed, self.lag = self.lag, 0.0
            self._wait(passed)
        fault = simulation.faults.draw(service, simulation.scheduler.seconds)
        if fault is Fault.CRASH_BEFORE:
            self.crash(f"before {what}")
        self._wait(simulation.faults.latency(simulation.scheduler.seconds))
        if fault is Fault.REFUSED:
            self.note(f"{what}: refused")
            raise refused()
        if fault is Fault.IN_PART and in_part is not None:
            self.note(f"{what}: in part")
            answer = in_part()
        else:
            answer = self._done(what, do)
        if fault is Fault.REPEATED and repeatable:
            self._wait(simulation.faults.latency(simulation.scheduler.seconds))
            answer = self._done(f"{what}: the answer is lost, repeated by the SDK", do)
        self._wait(simulation.faults.latency(simulation.scheduler.seconds))
        if fault is Fault.CRASH_AFTER:
            self.crash(f"after {what}")
        if fault is Fault.ANSWER_LOST:
            self.note(f"{what}: the answer is lost")
            raise lost()
        return answer

    def _done(self, what: str, do: Callable[[], T]) -> T:
        try:
            answer = do()
        except ClientError as error:
            self.note(f"{what}: {error.response['Error']['Code']}")
            raise
        self.note(what)
        return answer

    def crash(self, where: str) -> None:
        """The end of it."""
        self.note(f"DIES {where}")
        self.is_alive = False
        raise ProcessCrashed(where)

    def note(self, what: str) -> None:
        """A line in the log."""
        self.simulation.log.note(self.simulation.scheduler.seconds, self.name, what)

    def _wait(self, seconds: float) -> None:
        self.simulation.scheduler.wait(seconds)
        self._check()

    def _check(self) -> None:
        if not self.is_alive or self.simulation.scheduler.is_over:
            raise ProcessCrashed(self.name)
        if self.simulation.scheduler.seconds > self.ends_at:
            self.crash("of its function's timeout")


_current: ContextVar[Process] = ContextVar("current process")


@contextmanager
def running(process: Process) -> Iterator[Process]:
    """Within, the process is the one that runs on this turn: clients are made for whoever asks for them."""
    token = _current.set(process)
    try:
        yield process
    finally:
        _current.reset(token)


def current_process() -> Process:
    """The process that runs."""
    return _current.get()
