"""A process of the simulated cloud; faults may crash it at each call of a service."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from botocore.exceptions import ClientError

from asya.function.aws.outages import ServiceHealth, cause_of, is_refusal
from asya.runtime.time_limit import TimeLimitReached
from asya.testing.services.faults import Fault, Faults

if TYPE_CHECKING:
    from asya.testing.services.queues import Message
    from asya.testing.services.scheduler import EventLog, Scheduler

T = TypeVar("T")

# The names of the services whose health a process watches, as `asya.function.aws.clients` does.
_WATCHED = {"sqs": "SQS", "s3": "S3", "dynamodb": "DynamoDB"}


class ProcessCrashed(BaseException):
    """Unwinds a crashed process; if code catches it, the next call raises it again."""


@dataclass
class Invocation:
    """One invocation of a function.

    Attributes:
        began: virtual seconds of its start.
    """

    actor: str
    messages: "list[Message]"
    began: float


@dataclass
class Simulation:
    """The state that all processes share: time, faults, randomness and the log.

    Attributes:
        new_invocation: makes an invocation of an actor, with its messages and the time of its start.
    """

    scheduler: "Scheduler"
    faults: Faults
    random: Random
    log: "EventLog"
    new_invocation: "Callable[[str, list[Message], float], Invocation]" = Invocation


@dataclass
class Process:
    """One process; it implements `asya.function.lambdas.environment.Environment`.

    Attributes:
        ends_at: virtual seconds of its function's timeout.
        lag: seconds of user code that other processes have not seen pass yet, because user code does not yield.
        invocation: the current one; None between two invocations.
        crash_cause: the trail of the call that crashed it; empty if a fault did.
        linger: sends what waits to be sent, as the sender's thread does while a handler runs.
    """

    name: str
    simulation: Simulation
    is_alive: bool = True
    ends_at: float = float("inf")
    lag: float = 0.0
    invocation: "Invocation | None" = None
    crash_cause: str = ""
    linger: Callable[[], None] = lambda: None
    health: ServiceHealth = field(init=False)
    _limits: list[float] = field(default_factory=list)

    is_threaded = False

    def __post_init__(self) -> None:
        self.health = ServiceHealth(lambda: self.now().timestamp())

    def now(self) -> datetime:
        """Return the current time."""
        return self.simulation.scheduler.now + timedelta(seconds=self.lag)

    def monotonic(self) -> float:
        """Return the current time in virtual seconds."""
        return self.simulation.scheduler.seconds + self.lag

    def sleep(self, seconds: float) -> None:
        """Wait between half and all of these seconds."""
        self.simulation.scheduler.wait(seconds * self.simulation.random.uniform(0.5, 1.0))
        self._check()

    def random(self) -> float:
        """Return a number in [0, 1)."""
        return self.simulation.random.random()

    def new_span(self) -> str:
        """Return 16 hexadecimal digits."""
        return f"{self.simulation.random.getrandbits(64):016x}"

    def entry_point(self, name: str) -> Any:
        """Import the entry point of its function."""
        module, _, attribute = name.rpartition(".")
        return getattr(import_module(module), attribute)

    def run_within(self, seconds: float, run: Callable[[], T]) -> T:
        """Run user code with a time limit; `spend` raises at the limit."""
        self._limits.append(self.monotonic() + seconds)
        try:
            return run()
        finally:
            self._limits.pop()

    @contextmanager
    def back_at(self, seconds: float) -> Iterator[None]:
        """Let user code run from an earlier time on, beside what this process has done since.

        Args:
            seconds: the time of its start, in virtual seconds; see `monotonic`.
        """
        reached = self.monotonic()
        self.lag = seconds - self.simulation.scheduler.seconds
        try:
            yield
        finally:
            self.lag = max(reached, self.monotonic()) - self.simulation.scheduler.seconds

    def spend(self, seconds: float) -> None:
        """Let user code take time.

        Raises:
            TimeLimitReached: if the time limit comes first.
        """
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
        refusal: Callable[[], Exception],
        lost_response: Callable[[], Exception],
        in_part: Callable[[], T] | None = None,
        repeatable: bool = True,
    ) -> T:
        """Call a service: the call takes time and may have a `Fault`.

        Args:
            refusal: makes the error of a call without effect.
            lost_response: makes the error of a call without a response.
            in_part: executes a part of the request and returns the rest as failed.
            repeatable: whether the SDK repeats the call after a lost response, with a second effect.
        """
        self._check()
        simulation = self.simulation
        if self.lag:
            passed, self.lag = self.lag, 0.0
            self._wait(passed)
        watched = _WATCHED.get(service, "") if service != "sqs" or what.startswith("SendMessage") else ""
        if watched:
            self.health.before(watched)
        fault = simulation.faults.draw(service, what, simulation.scheduler.seconds)
        if fault is Fault.CRASH_BEFORE:
            self.crash(f"before {what}")
        self._wait(simulation.faults.latency(simulation.scheduler.seconds))
        if fault is Fault.REFUSED:
            self.note(f"{what}: refused")
            error = refusal()
            if watched:
                self.health.failed(watched, cause_of(error))
            raise error
        if fault is Fault.IN_PART and in_part is not None:
            self.note(f"{what}: executed in part")
            answer = in_part()
        else:
            answer = self._execute(service, what, do)
        if fault is Fault.REPEATED and repeatable:
            self._wait(simulation.faults.latency(simulation.scheduler.seconds))
            answer = self._execute(service, f"{what}: the response is lost, repeated by the SDK", do)
        self._wait(simulation.faults.latency(simulation.scheduler.seconds))
        if fault is Fault.CRASH_AFTER:
            self.crash(f"after {what}")
        if fault is Fault.ANSWER_LOST:
            self.note(f"{what}: the response is lost")
            error = lost_response()
            if watched:
                self.health.failed(watched, cause_of(error))
            raise error
        if watched:
            self.health.answered(watched)
        return answer

    def _execute(self, service: str, what: str, do: Callable[[], T]) -> T:
        try:
            answer = do()
        except ClientError as error:
            if service in _WATCHED:
                self.health.answered(_WATCHED[service])
                if is_refusal(error.response["Error"]["Code"]):
                    self.health.refused(_WATCHED[service], cause_of(error))
            self.note(f"{what}: {error.response['Error']['Code']}")
            raise
        self.note(what)
        return answer

    def crash(self, where: str) -> NoReturn:
        """Crash the process."""
        self.note(f"CRASHES {where}")
        self.is_alive = False
        raise ProcessCrashed(where)

    def note(self, what: str) -> None:
        """Write a line to the log."""
        self.simulation.log.note(self.simulation.scheduler.seconds, self.name, what)

    def _wait(self, seconds: float) -> None:
        self.simulation.scheduler.wait(seconds)
        self._check()

    def _check(self) -> None:
        if not self.is_alive or self.simulation.scheduler.is_over:
            raise ProcessCrashed(self.name)
        if self.simulation.scheduler.seconds > self.ends_at:
            self.crash("at its function's timeout")


_current: ContextVar[Process] = ContextVar("current process")


@contextmanager
def running(process: Process) -> Iterator[Process]:
    """Make a process the current one; new clients belong to it."""
    token = _current.set(process)
    try:
        yield process
    finally:
        _current.reset(token)


def current_process() -> Process:
    """Return the current process."""
    return _current.get()
