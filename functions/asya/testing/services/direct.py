"""S3 in memory for tests of one function: calls take no time, and have the faults that a test plans."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from threading import RLock
from typing import Any, TypeVar

from asya.testing.planned_faults import PlannedFaults
from asya.testing.services.clients import Bucket, S3Client
from asya.testing.services.faults import Fault, FaultProfile
from asya.testing.services.process import Process, ProcessCrashed, Simulation
from asya.testing.services.scheduler import EventLog, Scheduler

T = TypeVar("T")


def new_simulation() -> Simulation:
    """A simulation whose time passes only in `Scheduler.run`, and whose faults are planned."""
    random = Random(0)
    return Simulation(Scheduler(), PlannedFaults(random, FaultProfile()), random, EventLog())


@dataclass
class DirectProcess(Process):
    """The process of the test itself: no scheduler runs it, its calls take no time, and they may come from any thread."""

    name: str = "test"
    simulation: Simulation = field(default_factory=new_simulation)
    lock: Any = field(default_factory=RLock)

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
        """See `Process`."""
        with self.lock:
            fault = self.simulation.faults.draw(service, what, self.simulation.scheduler.seconds)
            if fault is Fault.CRASH_BEFORE:
                raise ProcessCrashed(what)
            if fault is Fault.REFUSED:
                raise refusal()
            answer = in_part() if fault is Fault.IN_PART and in_part is not None else do()
            if fault is Fault.REPEATED and repeatable:
                answer = do()
            if fault is Fault.CRASH_AFTER:
                raise ProcessCrashed(what)
            if fault is Fault.ANSWER_LOST:
                raise lost_response()
            return answer


@dataclass
class MemoryS3(S3Client):
    """An S3 client over one bucket in memory.

    Attributes:
        calls: (operation, key) of each call in order, also of failed ones; operations are put, get, head and delete.
        fails: whether a call (operation, key) fails with 503.
    """

    process: Process = field(default_factory=DirectProcess)
    bucket: Bucket = field(default_factory=Bucket)
    calls: list[tuple[str, str]] = field(default_factory=list)
    fails: Callable[[str, str], bool] = lambda _operation, _key: False

    def __post_init__(self) -> None:
        faults = self.process.simulation.faults
        assert isinstance(faults, PlannedFaults)
        faults.plan = self._fault

    @property
    def objects(self) -> dict[str, bytes]:
        """The content of the objects by key."""
        return self.bucket.objects

    @property
    def metadata(self) -> dict[str, Mapping[str, str]]:
        """The metadata of the objects by key."""
        return self.bucket.metadata

    def keys(self, prefix: str = "") -> list[str]:
        """Return the sorted keys below a prefix."""
        return sorted(key for key in self.objects if key.startswith(prefix))

    def content(self, key: str) -> bytes:
        """Return the content of an object."""
        return self.objects[key]

    def _fault(self, _service: str, what: str) -> Fault:
        operation, _, key = what.partition(" ")
        operation = operation.removesuffix("Object").lower()
        self.calls.append((operation, key))
        return Fault.REFUSED if self.fails(operation, key) else Fault.NONE
