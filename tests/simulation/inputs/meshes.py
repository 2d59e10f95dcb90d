"""Random meshes: actors, their options and their handlers."""

from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

from msgspec import UNSET, structs

from asya import registry
from asya.heavy.run_formation import Isolation
from asya.protocol.mesh_table import (
    Actor,
    Batch,
    CircuitBreaker,
    FanIn,
    JobSize,
    MeshTable,
    Policy,
    Resiliency,
    Rule,
    Sink,
    SparkApplication,
    SparkJob,
)
from asya.testing.services.faults import FaultProfile
from tests.simulation.checks.observed_envelope import ObservedEnvelope, target_of
from tests.simulation.ends.actors import end_actors
from tests.simulation.inputs.features import Features
from tests.simulation.inputs.handlers import handler_name
from tests.simulation.inputs.programs import BEHAVIORS, ERRORS, RERUN_BEHAVIORS, Behavior, HandlerKind, Program
from tests.simulation.pauses.actors import pause_actors
from tests.simulation.waits.actors import wait_actors

NAMES = ("prep", "infer", "post", "check", "store")
HEAVY_NAMES = ("crunch", "tabulate")
_WITH_PROGRAMS = ("handler", "spark", "fan_in", "crew")
"""The kinds of actors that the routes of the workload take from elsewhere, or never contain."""
HANDLER_KINDS: tuple[HandlerKind, ...] = ("function", "coroutine", "generator", "async generator")


@dataclass(frozen=True)
class SimulatedMesh:
    """The mesh table of the functions, and the programs of the handlers by actor."""

    table: MeshTable
    programs: dict[str, Program]

    @property
    def is_heavy(self) -> bool:
        """Whether the mesh has heavy actors."""
        return any(actor.kind == "spark" for actor in self.table.actors.values())

    def is_poison(self, envelope: ObservedEnvelope) -> bool:
        """Whether this envelope crashes the process that handles it."""
        program = self.programs.get(target_of(envelope, envelope.curr))
        return program is not None and envelope.trail is not None and program.plan(envelope.trail).behavior == "poison"

    @property
    def light_actors(self) -> tuple[str, ...]:
        """The actors with handlers, except hooks and end actors."""
        return tuple(name for name in self.programs if name != "hook" and self.table.actors[name].kind != "end")

    @property
    def routable_actors(self) -> tuple[str, ...]:
        """The actors for the routes of the workload."""
        return (
            *self.light_actors,
            *(name for name, actor in self.table.actors.items() if actor.kind not in _WITH_PROGRAMS),
        )


def random_mesh(
    random: Random, profile: FaultProfile, *, is_heavy: bool = False, features: Features = frozenset()
) -> SimulatedMesh:
    """Draw a mesh: light actors, the crew, perhaps fan-in actors and a hook, and heavy actors on request.

    Args:
        features: the features with actors of their own.
    """
    names = NAMES[: random.randint(1, 3) if is_heavy else random.randint(2, len(NAMES))]
    heavy = HEAVY_NAMES[: random.randint(1, 2)] if is_heavy else ()
    fan_ins = tuple(name for name in ("x-fan-in", "gather") if random.random() < 0.5)
    users = (*names, *heavy, *heavy)
    others = (*users, "x-checkpoint") if random.random() < 0.2 else users
    pauses = pause_actors(random) if "pauses" in features else {}
    waits = wait_actors(Random(f"waits {random.getstate()}")) if "waits" in features else {}  # see parallel
    behaviors = (*BEHAVIORS, *RERUN_BEHAVIORS) if "reruns" in features else BEHAVIORS
    ends, end_programs = end_actors(random, profile) if "ends" in features else ({}, {})
    others = (*others, *(name for name in pauses if name != "x-resume"), *waits, *ends)
    programs: dict[str, Program] = {}
    actors: dict[str, Actor] = {}
    for name in names:
        actors[name], programs[name] = _light(random, name, others, profile, behaviors=behaviors, fan_ins=fan_ins)
    for name in heavy:
        actors[name], programs[name] = _heavy(
            random, name, others, profile, fan_ins=fan_ins, lingers="lingers" in features
        )
    if "numbers" in features:
        numbers = Random(f"numbers {random.getstate()}")  # see parallel
        actors = {name: _numbering(actor) if numbers.random() < 0.7 else actor for name, actor in actors.items()}
    sink = Sink(persist=random.random() < 0.95)
    if random.random() < 0.2:
        actors["hook"], programs["hook"] = _light(
            random, "hook", ("hook",), FaultProfile(), behaviors=("fail", "nothing")
        )
        sink = Sink(hooks=("hook",), hooks_for_children=random.random() < 0.5)
    actors |= {name: Actor(kind="fan_in", fan_in=_fan_in(random), timeout=20.0) for name in fan_ins}
    crew = {name: Actor(kind="crew") for name in ("x-sink", "x-sump", "x-checkpoint")}
    # These settings may differ from the quota of the account.
    limits = SparkApplication(
        start_per_second=random.choice((0.2, 1.0, 5.0)),
        start_burst=random.choice((1, 5, 25)),
        max_concurrent_runs=Random(f"slots {random.getstate()}").choice((None, None, 1, 3)),  # see parallel
    )
    table = MeshTable(
        namespace="sim",
        actors=actors | pauses | waits | ends | crew,
        sink=sink,
        max_hops=random.choice((6, 12, 30)),
        spark=limits if is_heavy else SparkApplication(),
    )
    return SimulatedMesh(table, programs | end_programs)


def _light(
    random: Random,
    name: str,
    others: tuple[str, ...],
    profile: FaultProfile,
    *,
    behaviors: tuple[Behavior, ...] = BEHAVIORS,
    fan_ins: tuple[str, ...] = (),
) -> tuple[Actor, Program]:
    timeout = random.choice((2.0, 5.0, 20.0))
    is_buffered = random.random() < 0.3
    repertoire = tuple(
        behavior
        for behavior in behaviors
        if random.random() < (0.7 if behavior in ("fan", "split") else 0.4) and _is_possible(behavior, profile)
    )
    if profile.name == "poison":
        repertoire = (*repertoire[:2], "poison")
    if profile.name in ("repeats", "fault-free") and random.random() < 0.5 and fan_ins:
        # A slice that fails once and is delivered twice has two ends, or a late retry; only one may count.
        repertoire = ("fail", "split")
    actor = Actor(
        kind="handler",
        handler=handler_name(name),
        timeout=timeout,
        batch=Batch(size=random.choice((3, 10) if profile.name == "poison" else (1, 3, 10))),
        max_receives=random.choice((3, 5, 5)),
        resiliency=_resiliency(random, others),
        deduplicate=random.random() < 0.2,
        options=_options(random) or UNSET,
        frames="buffered" if is_buffered else "streamed",
    )
    program = Program(
        actor=name,
        seed=random.getrandbits(32),
        handler_kind=random.choices(HANDLER_KINDS, (2, 1, 3, 2))[0],
        repertoire=repertoire,
        actors=others,
        timeout=timeout,
        is_nondeterministic=is_buffered and random.random() < 0.5,
        fan_ins=fan_ins,
    )
    return actor, program


def _options(random: Random) -> dict[str, object]:
    """Draw the options of capabilities that are on or off."""
    switches = [key for key, option in registry.PRODUCT.options.items() if option.type is bool]
    return {key: True for key in switches if random.random() < 0.2}


def _numbering(actor: Actor) -> Actor:
    return structs.replace(actor, options={**actor.own_options, "child_ids": "suffix"})


def _is_possible(behavior: Behavior, profile: FaultProfile) -> bool:
    """Whether the faults of a schedule include this behavior of handlers."""
    return {"poison": profile.poison, "die": not profile.is_fault_free}.get(behavior, True)


def _heavy(
    random: Random,
    name: str,
    others: tuple[str, ...],
    profile: FaultProfile,
    *,
    fan_ins: tuple[str, ...],
    lingers: bool = False,
) -> tuple[Actor, Program]:
    """Draw a heavy actor; its results may differ in each call, because the committed ones count."""
    light, program = _light(random, name, others, profile, fan_ins=fan_ins)
    shape: Literal["payload", "dataframe"] = random.choice(("payload", "payload", "dataframe"))
    isolation = _isolation(Random(f"isolation {random.getstate()}"), lingers=lingers)
    parallel = Random(f"{random.getstate()}").choice((1, 1, 4))  # leaves the other draws as they are
    fair_by = Random(f"fair {random.getstate()}").choice((None, None, "tenant", "owner"))
    actor = structs.replace(
        light,
        kind="spark",
        handler=None,
        spark=SparkJob(
            job=f"jobs.{name}",
            shape=shape,
            max_run=max(random.choice((120.0, 1800.0)), 1800.0 if lingers else 0.0),
            parallel=parallel if isolation != "envelope" else 1,
            max_runs=Random(f"max_runs {random.getstate()}").choice((None, None, 1, 2)),
            linger=Random(f"linger {random.getstate()}").choice((10.0, 120.0, 300.0)) if lingers else 0.0,
            priority=Random(f"priority {random.getstate()}").choice((0, 0, 1, 5)),
            isolation=isolation,
            **_sizes(Random(f"sizes {random.getstate()}")),
        ),
        timeout=random.choice((5.0, 20.0, 60.0)),
        batch=Batch(size=random.choice((1, 3, 10, 100)), window=random.choice((0.0, 2.0, 20.0))),
        resiliency=structs.replace(light.resiliency, circuit_breaker=None),
        deduplicate=False,
        options=UNSET,
        fair_by="owner" if isolation == "tenant" else fair_by,
    )
    repertoire = tuple(behavior for behavior in program.repertoire if behavior != "split" or shape == "payload")
    program = replace(program, is_nondeterministic=True, timeout=actor.timeout, repertoire=repertoire)
    return actor, program


def _isolation(random: Random, *, lingers: bool) -> Isolation:
    """Draw who shares a run. No run of one envelope lingers."""
    return random.choice(("none", "none", "tenant", "tenant" if lingers else "envelope"))


def _sizes(random: Random) -> dict[str, Any]:
    """Draw the sizes of runs: none, by the length of the trail, or one after the other."""
    by_trail = (JobSize(name="small", up_to=1.0), JobSize(name="large"))
    in_order = tuple(JobSize(name=name) for name in ("small", "medium", "large"))
    return random.choice(({}, {}, {"sizes": by_trail, "size_by": "/trail"}, {"sizes": in_order}))


def _resiliency(random: Random, actors: tuple[str, ...]) -> Resiliency:
    policies = {name: _policy(random, actors) for name in ("default", "patient") if random.random() < 0.6}
    rules: tuple[Rule, ...] = ()
    if policies and random.random() < 0.6:
        errors = (*random.sample(sorted(ERRORS), 2), *(("Timeout",) if random.random() < 0.4 else ()))
        rules = (Rule(errors=errors, policy=random.choice(sorted(policies))),)
    breaker = CircuitBreaker(failures=2, window=60.0, open_for=30.0) if random.random() < 0.15 else None
    return Resiliency(policies=policies, rules=rules, circuit_breaker=breaker)


def _fan_in(random: Random) -> FanIn:
    return FanIn(
        timeout=random.choice((30.0, 300.0, 3000.0)),
        on_failure=random.choice(("fail", "partial")),
        quorum=random.choice((None, 1, 2)),
    )


def _policy(random: Random, actors: tuple[str, ...]) -> Policy:
    return Policy(
        max_attempts=random.choice((1, 2, 3, 4)),
        backoff=random.choice(("constant", "linear", "exponential")),
        initial_delay=random.choice((0.0, 0.5, 30.0, 1500.0)),
        max_interval=random.choice((None, None, 60.0)),
        jitter=random.random() < 0.3,
        max_duration=random.choice((None, None, None, 40.0)),
        then_route=tuple(random.choices(actors, k=random.randint(1, 2))) if random.random() < 0.3 else None,
    )
