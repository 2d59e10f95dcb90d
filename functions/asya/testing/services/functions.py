"""The mesh's functions: real entry points with simulated clients, in processes that stay warm.

A process ends when it crashes. The sweep, the DLQ function and the reconciler run on schedules.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from asya import registry
from asya.function.aws.outages import ServiceHealth
from asya.function.aws.settings import Settings
from asya.function.lambdas.batch import BatchResponse
from asya.monitoring import Dimension, Metric, Unit
from asya.protocol import names
from asya.protocol.keys import RESULTS_PREFIX
from asya.protocol.mesh_table import MeshTable
from asya.sidecar.lambdas.entry_point import Invocation, QueueEntryPoint, ScheduleEntryPoint
from asya.sidecar.lambdas.services import Services
from asya.tasks.reporting.aws.gateway_client import CredentialsSource
from asya.testing.services.process import Process, ProcessCrashed, Simulation, current_process, running

REGION = "eu-west-1"
ACCOUNT = "123456789012"
BUCKET = "asya-sim-123456789012-eu-west-1"
RESULTS_URI = f"s3://{BUCKET}/{RESULTS_PREFIX}"
QUEUES = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/"


class EntryPoint(Protocol):
    """Processes batches of a queue."""

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process the event; the answer names the failed messages."""


class QuietTelemetry:
    """Writes log lines to the simulation's log, checks that metrics are declared, and drops them.

    Args:
        process: The process of the function.
        table: The mesh, whose capabilities declare metrics.
    """

    traces = None

    def __init__(self, process: Process, table: MeshTable) -> None:
        self._process = process
        self._metrics = registry.of(table).metrics
        self.log = self

    def _line(self, message: str, **more: Any) -> None:
        fields = ", ".join(f"{name}={value}" for name, value in more.items() if name not in ("payload", "route"))
        self._process.note(f"log: {message} {fields}")

    debug = info = warning = error = exception = _line

    def count(
        self, name: str, _amount: float = 1, *, by: tuple[Dimension, str] | None = None, actor: str | None = None
    ) -> None:
        """See `Telemetry`."""
        self._check(Metric(name, "Count", by[0] if by is not None else None))

    def measure(self, name: str, _value: float, unit: Unit, *, actor: str | None = None) -> None:
        """See `Telemetry`."""
        self._check(Metric(name, unit))

    def _check(self, metric: Metric) -> None:
        """Refuse a metric that no manifest declares so: neither alarms nor dashboards can show it."""
        if self._metrics.get(metric.name) != metric:
            raise ValueError(f"a function writes {metric}; add it to METRICS of the manifest of its capability")

    def flush(self) -> None:
        """See `Telemetry`."""


@dataclass(frozen=True)
class SimulatedServices(Services):
    """The services of a function in a simulated process."""

    process: Process | None = None

    @classmethod
    def of(cls, settings: Settings, process: Process) -> "SimulatedServices":
        """The services of a process, which is their environment too."""
        return cls(settings, process, process=process)

    @cached_property
    def telemetry(self) -> Any:
        """See `Services`."""
        assert self.process is not None
        return QuietTelemetry(self.process, self.settings.table)

    @property
    def credentials(self) -> CredentialsSource:
        """See `Services`."""
        return NoCredentials()

    @property
    def health(self) -> ServiceHealth:
        """See `Services`."""
        assert self.process is not None
        return self.process.health


class NoCredentials:
    """Signs nothing: no envelope names a foreign gateway. A session for each simulated process takes a tenth of a run."""

    def get_credentials(self) -> None:
        """Return nothing."""


@dataclass(frozen=True)
class TimeLeft:
    """The Lambda context's remaining time."""

    process: Process

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until the timeout."""
        return int((self.process.ends_at - self.process.monotonic()) * 1000)


@dataclass(frozen=True)
class Started:
    """A function that has started in a process."""

    invoke: Invocation

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process the event; the answer names the failed messages."""
        return self.invoke(event, TimeLeft(current_process()))


def build(services: Services) -> EntryPoint:
    """Build the function of an actor or of a queue of the mesh, as Lambda does."""
    settings = services.settings
    function = registry.function_of(settings.actor, settings.table)
    entry_point: QueueEntryPoint = current_process().entry_point(function.entry_point)
    return Started(entry_point.start(services))


@dataclass
class Function:
    """One function and its warm processes.

    Attributes:
        timeout: seconds per invocation.
        concurrency: the limit of concurrent invocations.
        running: the number of current invocations.
        new_services: makes the services of a process.
    """

    actor: str
    settings: Settings
    batch_size: int
    timeout: float
    concurrency: int
    new_process: Callable[[str], Process]
    running: int = 0
    new_services: Callable[[Settings, Process], Services] = SimulatedServices.of
    process_count: int = 0
    _warm: list[tuple[Process, EntryPoint]] = field(default_factory=list)
    _outdated: set[str] = field(default_factory=set)

    def replace(self, settings: Settings) -> None:
        """Deploy the function again: new processes have these settings, and the present ones end with their invocations."""
        self.settings = settings
        self._warm.clear()
        self._outdated = {f"{self.actor}/{number}" for number in range(1, self.process_count + 1)}

    def acquire(self) -> tuple[Process, EntryPoint]:
        """Return a warm process, or start a new one."""
        if self._warm:
            return self._warm.pop()
        self.process_count += 1
        process = self.new_process(f"{self.actor}/{self.process_count}")
        with running(process):
            services = self.new_services(self.settings, process)
            process.linger = services.outbox.flush
            return process, build(services)

    def release(self, process: Process, entry: EntryPoint) -> None:
        """Keep a process warm after an invocation, unless it crashed."""
        process.invocation = None
        process.ends_at = float("inf")
        process.lag = 0.0
        if process.is_alive and process.name not in self._outdated:
            self._warm.append((process, entry))


TIMEOUT = 120.0


@dataclass
class SystemFunctions:
    """Runs the scheduled functions and the steps of the clock, each time in a new process.

    Attributes:
        fails_overdue_tasks: whether the sweep of deadlines runs.
        new_services: makes the services of a process.
    """

    simulation: Simulation
    settings: Mapping[str, Settings]
    new_process: Callable[[str], Process]
    mesh: MeshTable
    fails_overdue_tasks: bool = False
    new_services: Callable[[Settings, Process], Services] = SimulatedServices.of
    process_count: int = 0

    def wake_all(self) -> None:
        """Start each scheduled function once."""
        self._wake(registry.sweeps_of(self.mesh))

    def wake_minutely(self) -> None:
        """Start once the functions that run every minute."""
        self._wake(name for name, schedule in registry.sweeps_of(self.mesh).items() if schedule.minutes == 1)

    def _wake(self, sweeps: Iterable[str]) -> None:
        for name in sweeps:
            if name != names.TASK_SWEEP or self.fails_overdue_tasks:
                self.wake(name)

    def sweep_deadlines(self) -> None:
        """Start the deadline sweep once."""
        self.wake(names.TASK_SWEEP)

    def wake(self, name: str) -> None:
        """Start a scheduled function once."""
        self.simulation.scheduler.start(lambda: self.run(name))

    def run(self, name: str) -> None:
        """Run a scheduled function once, in the calling process."""
        self.process_count += 1
        process = self.new_process(f"{name}/{self.process_count}")
        process.ends_at = self.simulation.scheduler.seconds + TIMEOUT
        process.invocation = self.simulation.new_invocation(name, [], self.simulation.scheduler.seconds)
        with running(process):
            try:
                declared = registry.of(self.mesh).sweeps[name]
                entry_point: ScheduleEntryPoint = process.entry_point(declared.entry_point)
                entry_point.sweep(self.new_services(self.settings[name], process))
            except ProcessCrashed:
                pass
            except Exception as error:  # noqa: BLE001 - the next tick retries
                process.note(f"raised {error!r}")
