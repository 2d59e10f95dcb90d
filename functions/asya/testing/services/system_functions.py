"""The scheduled functions: the sweep of open sets, the DLQ function and the reconciler."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from asya import registry
from asya.function.aws.settings import Settings
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.sidecar.lambdas.entry_point import ScheduleEntryPoint
from asya.sidecar.lambdas.services import Services
from asya.testing.services.functions import SimulatedServices
from asya.testing.services.process import Process, ProcessCrashed, Simulation, running

TIMEOUT = 120.0


@dataclass
class SystemFunctions:
    """Runs the scheduled functions, each time in a new process.

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
                declared = registry.of(self.mesh).functions[name]
                entry_point: ScheduleEntryPoint = process.entry_point(declared.entry_point)
                entry_point.sweep(self.new_services(self.settings[name], process))
            except ProcessCrashed:
                pass
            except Exception as error:  # noqa: BLE001 - the next tick retries
                process.note(f"raised {error!r}")
