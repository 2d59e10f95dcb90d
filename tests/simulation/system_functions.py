"""The functions that a schedule wakes: the sweep over open sets, and the watch over dead-letter queues."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from asya.dead_letters import letters
from asya.dead_letters.lambdas.wiring import build_dlq
from asya.fan_in.lambdas.wiring import build_sweep
from asya.messaging.aws.settings import Settings
from asya.protocol import names
from asya.sidecar.lambdas.services import Services
from asya.spark.lambdas.reconcile import Reconciler
from asya.spark.lambdas.services import SparkServices
from tests.simulation.functions import SimulatedServices
from tests.simulation.ledger import Ledger
from tests.simulation.network import Pool
from tests.simulation.process import Invocation, Process, ProcessCrashed, Simulation, running

TIMEOUT = 120.0


@dataclass
class SystemFunctions:
    """Woken by schedules; each wake is a process of its own."""

    NAMES: ClassVar = (names.FAN_IN_SWEEP, names.DLQ, names.RECONCILE)

    simulation: Simulation
    settings: Mapping[str, Settings]
    new_process: Callable[[str], Process]
    new_pool: Callable[[Process, str], Pool]
    ledger: Ledger
    process_count: int = 0

    def wake_all(self) -> None:
        """One tick of each schedule."""
        self.simulation.scheduler.start(lambda: self._run(names.FAN_IN_SWEEP, _sweep))
        self.simulation.scheduler.start(lambda: self._run(names.DLQ, _watch))
        if any(actor.kind == "spark" for actor in self.ledger.mesh.actors.values()):
            self.simulation.scheduler.start(lambda: self._run(names.RECONCILE, _reconcile))

    def _run(self, name: str, work: Callable[[Services], None]) -> None:
        self.process_count += 1
        process = self.new_process(f"{name}/{self.process_count}")
        process.ends_at = self.simulation.scheduler.seconds + TIMEOUT
        process.invocation = Invocation(name, [], self.simulation.scheduler.seconds)
        with running(process):
            try:
                work(
                    SimulatedServices(self.settings[name], process, process=process, pool=self.new_pool(process, name))
                )
            except ProcessCrashed:
                pass
            except Exception as error:  # noqa: BLE001 - nothing comes after it but the next tick
                process.note(f"raised {error!r}")


def _sweep(services: Services) -> None:
    build_sweep(services).sweep()


def _watch(services: Services) -> None:
    build_dlq(services).scan(letters.watched_actors(services.settings.table))


def _reconcile(services: Services) -> None:
    Reconciler(SparkServices(services)).sweep()
