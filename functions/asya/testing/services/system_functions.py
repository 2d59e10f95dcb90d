"""The scheduled functions: the sweep of open sets, the DLQ function and the reconciler."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from asya.dead_letters import letters
from asya.dead_letters.lambdas.wiring import build_dlq
from asya.fan_in.lambdas.wiring import build_sweep
from asya.gateway.lambdas.wiring import build_deadline_sweep, build_lost_sweep
from asya.messaging.aws.settings import Settings
from asya.pause.lambdas.wiring import build_sweep as build_pause_sweep
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.sidecar.lambdas.services import Services
from asya.spark.lambdas.reconcile import Reconciler
from asya.spark.lambdas.services import SparkServices
from asya.testing.services.functions import SimulatedServices
from asya.testing.services.process import Process, ProcessCrashed, Simulation, running
from asya.triggers.lambdas.wiring import build_backfill_sweep, build_lane_sweep, build_slot_sweep

TIMEOUT = 120.0


@dataclass
class SystemFunctions:
    """Runs the scheduled functions, each time in a new process.

    Attributes:
        fails_overdue_tasks: whether the sweep of deadlines runs.
        new_services: makes the services of a process.
    """

    NAMES: ClassVar = (names.FAN_IN_SWEEP, names.DLQ, names.RECONCILE, names.PAUSE_SWEEP, names.TASK_SWEEP)

    simulation: Simulation
    settings: Mapping[str, Settings]
    new_process: Callable[[str], Process]
    mesh: MeshTable
    fails_overdue_tasks: bool = False
    new_services: Callable[[Settings, Process], Services] = SimulatedServices.of
    process_count: int = 0

    def wake_all(self) -> None:
        """Start each scheduled function once."""
        self.wake_minutely()
        self.wake(names.FAN_IN_SWEEP)
        self.wake(names.DLQ)
        if any(actor.kind == "spark" for actor in self.mesh.actors.values()):
            self.wake(names.RECONCILE)

    def wake_minutely(self) -> None:
        """Start once the functions that run every minute."""
        if any(actor.kind in ("pause", "wait") for actor in self.mesh.actors.values()):
            self.wake(names.PAUSE_SWEEP)
        if self.fails_overdue_tasks:
            self.sweep_deadlines()

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
                _FUNCTIONS[name](self.new_services(self.settings[name], process))
            except ProcessCrashed:
                pass
            except Exception as error:  # noqa: BLE001 - the next tick retries
                process.note(f"raised {error!r}")


def _sweep(services: Services) -> None:
    build_sweep(services).sweep()


def _sweep_deadlines(services: Services) -> None:
    build_slot_sweep(services).sweep()
    build_backfill_sweep(services).sweep()
    build_deadline_sweep(services).sweep()
    build_lane_sweep(services).sweep()
    build_lost_sweep(services).sweep()


def _scan(services: Services) -> None:
    build_dlq(services).scan(letters.watched_actors(services.settings.table))


def _reconcile(services: Services) -> None:
    Reconciler(SparkServices(services)).sweep()


def _release(services: Services) -> None:
    build_pause_sweep(services).sweep()


_FUNCTIONS: Mapping[str, Callable[[Services], None]] = {
    names.FAN_IN_SWEEP: _sweep,
    names.DLQ: _scan,
    names.RECONCILE: _reconcile,
    names.PAUSE_SWEEP: _release,
    names.TASK_SWEEP: _sweep_deadlines,
}
