"""One schedule: a mesh, a workload and a weather from a seed, run until everything is at rest."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from random import Random

from tests.simulation.cloud import Cloud, deploy
from tests.simulation.faults import Weather, any_weather
from tests.simulation.heavy.job_weather import any_job_weather
from tests.simulation.invariants import AtRest
from tests.simulation.meshes import any_mesh
from tests.simulation.planting import Planted
from tests.simulation.scheduler import StalledError
from tests.simulation.workload import Workload

# Schedules wake the sweep and the watch over dead letters; a tick in bad weather may fail, the next one goes on.
TICK = 300.0
TICKS_IN_A_STORM = 1
TICKS_AT_REST = 2
MOST_TICKS_AT_REST = 30
SEEDS_PER_MISTAKE = 100
COMMAND = ".venv/bin/python -m tests.simulation{heavy} --seed {seed}{weather}"


@dataclass(frozen=True)
class Outcome:
    """How a schedule went.

    Attributes:
        kind: the kind of weather that was asked for.
        is_heavy: whether the mesh has heavy actors.
    """

    seed: int
    kind: str | None
    is_heavy: bool
    weather: Weather
    violations: tuple[str, ...]
    cloud: Cloud

    @property
    def command(self) -> str:
        """What runs it again."""
        weather = f" --weather {self.kind}" if self.kind else ""
        return COMMAND.format(seed=self.seed, weather=weather, heavy=" --heavy" if self.is_heavy else "")

    def __str__(self) -> str:
        lines = [f"schedule {self.seed} ({self.weather.name}): {len(self.violations)} violations"]
        lines += [f"  - {violation}" for violation in self.violations]
        return "\n".join([*lines, f"  again, with its log: {self.command}"])


def run(seed: int, kind: str | None = None, *, is_heavy: bool = False, to_the_end: bool = False) -> Outcome:
    """Run the schedule of a seed.

    Args:
        kind: of weather (`faults.KINDS`), if it is not to be drawn.
        is_heavy: in a mesh with heavy actors.
        to_the_end: go on after a violation, to see what comes of it.
    """
    random = Random(f"heavy schedule {seed}" if is_heavy else f"schedule {seed}")
    weather = any_weather(random, kind)
    mesh = any_mesh(random, weather, is_heavy=is_heavy)
    cloud = deploy(mesh, random, weather, any_job_weather(random, weather) if is_heavy else None)
    cloud.ledger.stops_at_once = not to_the_end
    workload = Workload(cloud, random)
    with cloud.on_stage():
        workload.schedule(random.randint(3, 16) if is_heavy else random.randint(3, 14))
        for number in range(TICKS_IN_A_STORM):
            cloud.nature.scheduler.after(TICK * (number + 1), cloud.system.wake_all)
        stalled: list[str] = []
        try:
            if random.random() < 0.3:
                cloud.nature.scheduler.start(workload.redrive, delay=random.uniform(20.0, 250.0))
            _come_to_rest(cloud)
            if random.random() < 0.5:
                cloud.nature.scheduler.start(workload.redrive)
                _come_to_rest(cloud)
        except StalledError as error:
            stalled = [str(error)]
        for task_id in workload.started:
            cloud.nature.scheduler.start(partial(workload.look_again, task_id))
        if not cloud.nature.scheduler.is_over:
            cloud.nature.scheduler.run()
    found = [*cloud.ledger.violations, *stalled]
    if not found:
        found += AtRest(cloud, workload).problems()
    return Outcome(seed, kind, is_heavy, weather, tuple(found), cloud)


def _come_to_rest(cloud: Cloud) -> None:
    """Let everything happen that is due, and the schedules wake what they wake, until there is nothing left to find."""
    scheduler = cloud.nature.scheduler
    for number in range(MOST_TICKS_AT_REST):
        scheduler.run()
        # A set that nobody looks at any more is found by the sweep, once it is due.
        is_quiet = cloud.ledger.runs.is_quiet and not any(cloud.ledger.sets.problems())
        if scheduler.is_over or (number >= TICKS_AT_REST and is_quiet):
            return
        scheduler.after(TICK, cloud.system.wake_all)
    scheduler.run()


def seed_that_finds(mistake: Planted, *, is_heavy: bool, seeds: Iterable[int] | None = None) -> int | None:
    """The first of some seeds whose schedule shows a planted mistake, by default of a hundred and its own; None if none does."""
    tried = chain([mistake.seed], range(SEEDS_PER_MISTAKE)) if seeds is None else seeds
    with mistake.plant():
        return next((seed for seed in tried if run(seed, mistake.kind, is_heavy=is_heavy).violations), None)
