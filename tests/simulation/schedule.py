"""One schedule: a mesh, a workload and a weather from a seed, run until everything is at rest."""

from dataclasses import dataclass
from functools import partial
from random import Random

from tests.simulation.cloud import Cloud, deploy
from tests.simulation.faults import Weather, any_weather
from tests.simulation.invariants import AtRest
from tests.simulation.meshes import any_mesh
from tests.simulation.scheduler import StalledError
from tests.simulation.workload import Workload

# Schedules wake the sweep and the watch over dead letters; a tick in bad weather may fail, the next one goes on.
TICK = 300.0
TICKS_IN_A_STORM = 1
TICKS_AT_REST = 2
COMMAND = ".venv/bin/python -m tests.simulation --seed {seed}{weather}"


@dataclass(frozen=True)
class Outcome:
    """How a schedule went.

    Attributes:
        kind: the kind of weather that was asked for.
    """

    seed: int
    kind: str | None
    weather: Weather
    violations: tuple[str, ...]
    cloud: Cloud

    @property
    def command(self) -> str:
        """What runs it again."""
        return COMMAND.format(seed=self.seed, weather=f" --weather {self.kind}" if self.kind else "")

    def __str__(self) -> str:
        lines = [f"schedule {self.seed} ({self.weather.name}): {len(self.violations)} violations"]
        lines += [f"  - {violation}" for violation in self.violations]
        return "\n".join([*lines, f"  again, with its log: {self.command}"])


def run(seed: int, kind: str | None = None, *, to_the_end: bool = False) -> Outcome:
    """Run the schedule of a seed.

    Args:
        kind: of weather (`faults.KINDS`), if it is not to be drawn.
        to_the_end: go on after a violation, to see what comes of it.
    """
    random = Random(f"schedule {seed}")
    weather = any_weather(random, kind)
    mesh = any_mesh(random, weather)
    cloud = deploy(mesh, random, weather)
    cloud.ledger.stops_at_once = not to_the_end
    workload = Workload(cloud, random)
    with cloud.on_stage():
        workload.schedule(random.randint(3, 14))
        for number in range(TICKS_IN_A_STORM):
            cloud.nature.scheduler.after(TICK * (number + 1), cloud.system.wake_all)
        stalled: list[str] = []
        try:
            for _ in range(TICKS_AT_REST):
                cloud.nature.scheduler.run()
                cloud.nature.scheduler.after(TICK, cloud.system.wake_all)
            cloud.nature.scheduler.run()
        except StalledError as error:
            stalled = [str(error)]
        for task_id in workload.started:
            cloud.nature.scheduler.start(partial(workload.look_again, task_id))
        if not cloud.nature.scheduler.is_over:
            cloud.nature.scheduler.run()
    found = [*cloud.ledger.violations, *stalled]
    if not found:
        found += AtRest(cloud, workload).problems()
    return Outcome(seed, kind, weather, tuple(found), cloud)
