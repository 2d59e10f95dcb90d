"""Runs one schedule: a random mesh, workload and faults, until no process has work."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from random import Random

from asya.testing.services.faults import FaultProfile
from asya.testing.services.scheduler import StalledError
from tests.simulation.cloud import Cloud, deploy
from tests.simulation.deploys.deployment import Deployment
from tests.simulation.faults import random_outage, random_profile
from tests.simulation.heavy.draining import Draining
from tests.simulation.heavy.job_faults import random_job_faults
from tests.simulation.inputs.features import Features, random_features
from tests.simulation.inputs.meshes import random_mesh
from tests.simulation.inputs.workload import Workload
from tests.simulation.invariants import FinalChecks
from tests.simulation.mistake import Mistake

# Seconds between the runs of the scheduled functions.
TICK = 300.0
# Seconds between the deadline sweeps.
SWEEP = 60.0
MINUTE = 60.0
# Minutes in which the functions that run every minute do so.
MINUTES = 12
INITIAL_TICKS = 1
MIN_IDLE_TICKS = 2
MAX_IDLE_TICKS = 30
LONGEST_WORK = 3600.0
"""Virtual seconds of work without rest, after which the scheduled functions run all the same."""
SEEDS_PER_MISTAKE = 100
COMMAND = ".venv/bin/python -m tests.simulation{heavy} --seed {seed}{faults} --features {features}"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a schedule.

    Attributes:
        kind: the requested kind of faults; None if drawn.
        is_heavy: whether the mesh has heavy actors.
    """

    seed: int
    kind: str | None
    is_heavy: bool
    profile: FaultProfile
    features: Features
    violations: tuple[str, ...]
    cloud: Cloud

    @property
    def command(self) -> str:
        """The command that repeats the schedule."""
        faults = f" --faults {self.kind}" if self.kind else ""
        features = ",".join(sorted(self.features)) or "none"
        heavy = " --heavy" if self.is_heavy else ""
        return COMMAND.format(seed=self.seed, faults=faults, heavy=heavy, features=features)

    def __str__(self) -> str:
        lines = [f"schedule {self.seed} ({self.profile.name}): {len(self.violations)} violations"]
        lines += [f"  - {violation}" for violation in self.violations]
        return "\n".join([*lines, f"  repeat with the log: {self.command}"])


def run(
    seed: int,
    kind: str | None = None,
    *,
    is_heavy: bool = False,
    features: Features | None = None,
    service_off: tuple[str, float, float] | None = None,
    to_the_end: bool = False,
) -> Outcome:
    """Run the schedule of a seed.

    Args:
        kind: the kind of faults (`faults.KINDS`); None to draw one.
        is_heavy: whether the mesh has heavy actors.
        features: the features of the schedule; None to draw them.
        service_off: a service that is off, and from when to when; None to draw it if the schedule has outages.
        to_the_end: whether to continue after a violation.
    """
    random = Random(f"heavy schedule {seed}" if is_heavy else f"schedule {seed}")
    profile = random_profile(random, kind)
    if features is None:
        features = random_features(Random(f"features of {seed}"))
    mesh = random_mesh(random, profile, is_heavy=is_heavy, features=features)
    if "outages" in features and service_off is None:
        service_off = random_outage(Random(f"outage of {seed}"))
    profile = replace(profile, service_off=service_off)
    cloud = deploy(mesh, random, profile, random_job_faults(random, profile) if is_heavy else None)
    cloud.ledger.stops_at_first_violation = not to_the_end
    cloud.system.fails_overdue_tasks = "deadlines" in features
    workload = Workload(cloud, random, features)
    cloud.bus.subscriber = workload.caller.notified
    cloud.ledger.pauses.on_stored = workload.caller.stored
    with cloud.activate():
        workload.schedule(random.randint(3, 16) if is_heavy else random.randint(3, 14))
        for number in range(INITIAL_TICKS):
            cloud.simulation.scheduler.after(TICK * (number + 1), cloud.system.wake_all)
        if profile.report_outage is not None:
            for number in range(int(profile.report_outage[1] / SWEEP) + 10):
                cloud.simulation.scheduler.after(SWEEP * (number + 1), cloud.system.sweep_deadlines)
        for number in range(MINUTES if features else 0):
            cloud.simulation.scheduler.after(MINUTE * (number + 1), cloud.system.wake_minutely)
        if "deploys" in features:
            cloud.simulation.scheduler.start(Deployment(cloud, random).roll_out, delay=random.uniform(1.0, 60.0))
        if is_heavy and "drains" in features:
            Draining(cloud, Random(f"drains of {seed}")).schedule()
        stalled: list[str] = []
        try:
            if random.random() < 0.3:
                cloud.simulation.scheduler.start(workload.redrive, delay=random.uniform(20.0, 250.0))
            if "moves" in features:
                cloud.simulation.scheduler.start(workload.move_dead_letters, delay=random.uniform(100.0, 900.0))
            _run_until_idle(cloud)
            if random.random() < 0.5 or "moves" in features:
                again = workload.mend_and_move if "moves" in features and random.random() < 0.5 else workload.redrive
                cloud.simulation.scheduler.start(again)
                _run_until_idle(cloud)
        except StalledError as error:
            stalled = [str(error)]
        for task_id in workload.started:
            cloud.simulation.scheduler.start(partial(workload.check_task, task_id))
        if not cloud.simulation.scheduler.is_over:
            cloud.simulation.scheduler.run()
    violations = [*cloud.ledger.violations, *stalled]
    if not violations:
        violations += FinalChecks(cloud, workload).problems()
    return Outcome(seed, kind, is_heavy, profile, features, tuple(violations), cloud)


def _run_until_idle(cloud: Cloud) -> None:
    """Run all processes and the scheduled functions until neither has work."""
    scheduler = cloud.simulation.scheduler
    for number in range(MAX_IDLE_TICKS):
        letters = {letter.message_id for letter in cloud.ledger.dead_letters}
        # A function that asks again and again, as x-dispatch for a free place, may wait for what only a sweep finds.
        scheduler.run(until=scheduler.seconds + LONGEST_WORK)
        # Only the sweep finds a due set without messages.
        is_quiet = (
            scheduler.is_idle
            and cloud.ledger.runs.is_quiet
            and not any(cloud.ledger.sets.problems())
            and not cloud.ledger.pauses.releases
            and not cloud.ledger.waits.unsent
            # A sweep reports dead letters, and may have come before these.
            and letters.issuperset(letter.message_id for letter in cloud.ledger.dead_letters)
        )
        if scheduler.is_over or (number >= MIN_IDLE_TICKS and is_quiet):
            return
        scheduler.after(TICK, cloud.system.wake_all)
    scheduler.run()


@cache
def violations_without(seed: int, kind: str | None, *, is_heavy: bool, features: Features) -> tuple[str, ...]:
    """Return what a schedule violates while no mistake is planted. Several mistakes have the same schedule."""
    return run(seed, kind, is_heavy=is_heavy, features=features).violations


def find_seed(mistake: Mistake, *, is_heavy: bool, seeds: Iterable[int] | None = None) -> int | None:
    """Return the first seed whose schedule detects a planted mistake; None if no seed does.

    Args:
        seeds: the seeds to try; by default the seed of the mistake, then 0 to 99.
    """
    candidates = chain([mistake.seed], range(SEEDS_PER_MISTAKE)) if seeds is None else seeds

    def finds(seed: int) -> bool:
        return bool(run(seed, mistake.kind, is_heavy=is_heavy, features=mistake.features).violations)

    with mistake.plant():
        return next((seed for seed in candidates if finds(seed)), None)
