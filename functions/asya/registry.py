"""The capabilities of a mesh: the product's, and those that its mesh file names.

Synthesis, tools and local modes read the registry, and no function does.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from asya.capabilities.clock.manifest import CAPABILITY as _CLOCK
from asya.capabilities.dead_letters.manifest import CAPABILITY as _DEAD_LETTERS
from asya.capabilities.fan_in.manifest import CAPABILITY as _FAN_IN
from asya.capabilities.legacy.manifest import CAPABILITY as _LEGACY
from asya.capabilities.pauses.manifest import CAPABILITY as _PAUSES
from asya.capabilities.triggers.manifest import CAPABILITY as _TRIGGERS
from asya.ends.manifest import CAPABILITY as _ENDS
from asya.gateway.manifest import CAPABILITY as _GATEWAY
from asya.heavy.manifest import CAPABILITY as _HEAVY
from asya.light.manifest import CAPABILITY as _LIGHT
from asya.manifest import ActorFunction, Capability, Clock, Function, Queues
from asya.monitoring import Alarm, Graph, Metric, Threshold
from asya.needs import Need
from asya.option import Option
from asya.predicates import Predicate, always, is_actor, with_option
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.senders.statements import Statement
from asya.stores import Prefix, Table


@dataclass(frozen=True)
class Registry:
    """What capabilities declare."""

    capabilities: tuple[Capability, ...]

    @cached_property
    def functions(self) -> dict[str, Function]:
        """The functions of the mesh's own by name. The clock may do what its steps may."""
        own = {each.name: each for each in self._declared if isinstance(each, Function) and not each.is_step}
        steps = tuple(self.steps.values())
        return own | {name: _with_steps(each, steps) for name, each in own.items() if name == names.CLOCK}

    @cached_property
    def steps(self) -> dict[str, Function]:
        """What the clock runs, by name and in its order."""
        return {each.name: each for each in self._declared if isinstance(each, Function) and each.is_step}

    @cached_property
    def actor_functions(self) -> dict[str, ActorFunction]:
        """The functions of actors by kind, which may need what the options of their actors need."""
        declared = [each for each in self._declared if isinstance(each, ActorFunction)]
        return {each.kind: replace(each, needs=(*each.needs, *self._needs_of_options(each.kind))) for each in declared}

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that `kind` in the mesh file names."""
        return tuple(sorted(kind for kind, each in self.actor_functions.items() if each.is_named))

    @property
    def handler_kinds(self) -> frozenset[str]:
        """The kinds of actors with a handler of the user."""
        return frozenset(kind for kind, each in self.actor_functions.items() if each.queues is None)

    @cached_property
    def options(self) -> dict[str, Option[Any]]:
        """The options of actors by key, beside those of the actor table."""
        return {each.key: each for capability in self.capabilities for each in capability.options}

    @cached_property
    def crew(self) -> tuple[str, ...]:
        """The actors of the crew with functions of their own, whether a mesh has them or not."""
        return tuple(name for name, each in self.functions.items() if each.exists is is_actor)

    @cached_property
    def crew_of_kinds(self) -> dict[str, str]:
        """The other actors that a mesh has if it names them, with their kinds."""
        return {name: each.kind for each in self.actor_functions.values() for name in each.crew}

    @cached_property
    def on_demand(self) -> dict[str, str]:
        """The actors that a mesh gets when it needs them, with their kinds."""
        return {name: each.kind for each in self.actor_functions.values() for name in each.on_demand}

    @cached_property
    def own_queues(self) -> tuple[str, ...]:
        """The queues that meshes bring along: those of the crew and of the mesh's own functions."""
        consumers = [(name, each) for name, each in self.functions.items() if name not in self.crew]
        others = [queue for name, each in consumers if each.queues for queue in each.queues.names or (name,)]
        return (*self.crew, *self.crew_of_kinds, *self.on_demand, *others)

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables by name."""
        return {each.name: each for capability in self.capabilities for each in capability.tables}

    @cached_property
    def prefixes(self) -> tuple[Prefix, ...]:
        """The prefixes with the lifetime of their objects, by name."""
        found = [each for capability in self.capabilities for each in capability.prefixes]
        return tuple(sorted(found, key=lambda each: (each.store, each.name)))

    @cached_property
    def sweeps(self) -> dict[str, Function]:
        """The steps of the clock, and the other functions that schedules call, by name."""
        declared = (each for each in self._declared if isinstance(each, Function) and each.name != names.CLOCK)
        return {each.name: each for each in declared if isinstance(each.called_by, Clock)}

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """The metrics that functions write, by name."""
        return {each.name: each for capability in self.capabilities for each in capability.metrics}

    @cached_property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms, whether a mesh has them or not."""
        return tuple(each for capability in self.capabilities for each in capability.alarms)

    @cached_property
    def graphs(self) -> tuple[Graph, ...]:
        """The graphs of dashboards in their order, whether a mesh has them or not."""
        graphs = [each for capability in self.capabilities for each in capability.graphs]
        return tuple(sorted(graphs, key=lambda each: (each.section.page, each.section.at, each.section.title, each.at)))

    @cached_property
    def thresholds(self) -> dict[str, Threshold]:
        """The thresholds of alarms by their key in the mesh file."""
        return {each.threshold.key: each.threshold for each in self.alarms}

    def _needs_of_options(self, kind: str) -> Iterator[Need]:
        for key, needs in ((key, needs) for each in self.capabilities for key, needs in each.option_needs.items()):
            option = self.options[key]
            if not option.kinds or kind in option.kinds:
                yield from (replace(need, when=with_option(option)) for need in needs)

    @property
    def _declared(self) -> tuple[Function | ActorFunction, ...]:
        return tuple(each for capability in self.capabilities for each in capability.functions)


def _with_steps(clock: Function, steps: tuple[Function, ...]) -> Function:
    """Return the clock with the needs of its steps, and with time for all of them."""

    def with_steps(mesh: MeshTable, _name: str) -> bool:
        """With a step of the clock."""
        return any(step.exists(mesh, step.name) for step in steps)

    needs = tuple(replace(need, when=_of_step(step, need.when)) for step in steps for need in step.needs)
    timeout = clock.timeout + sum(step.timeout for step in steps)
    return replace(clock, needs=(*clock.needs, *needs), timeout=timeout, exists=with_steps)


def _of_step(step: Function, when: Predicate) -> Predicate:
    """Return whether a mesh has a step and its need."""
    if step.exists is always:
        return when

    def is_needed(mesh: MeshTable, _name: str) -> bool:
        """If a step of the clock needs it."""
        return step.exists(mesh, step.name) and when(mesh, step.name)

    return is_needed


PRODUCT = Registry((_GATEWAY, _LIGHT, _ENDS, _PAUSES, _FAN_IN, _DEAD_LETTERS, _CLOCK, _HEAVY, _TRIGGERS, _LEGACY))
"""The capabilities of every mesh."""

_NAMED: dict[tuple[str, str], Capability] = {}


def remember(package: str, digest: str, capability: Capability) -> None:
    """Remember a capability that a mesh file names, for the tables with this package and digest."""
    _NAMED[package, digest] = capability


def of(mesh: MeshTable) -> Registry:
    """Return the capabilities of a mesh.

    Raises:
        LookupError: Nothing in this process has read the mesh file that names a capability.
    """
    return _with_named(tuple(mesh.named_capabilities.items()))


@cache
def _with_named(named: tuple[tuple[str, str], ...]) -> Registry:
    missing = [package for package, digest in named if (package, digest) not in _NAMED]
    if missing:
        raise LookupError(f"the capability {missing[0]!r} is not loaded; load the mesh file that names it")
    return Registry((*PRODUCT.capabilities, *(_NAMED[each] for each in named))) if named else PRODUCT


def functions_of(mesh: MeshTable) -> list[Function]:
    """Return the mesh's own functions."""
    return [each for each in of(mesh).functions.values() if each.exists(mesh, each.name)]


def own_functions(mesh: MeshTable) -> list[Function]:
    """Return the mesh's own functions that capabilities in its mesh file declare."""
    return [each for each in functions_of(mesh) if not each.is_in_layer]


def own_entry_points(mesh: MeshTable) -> list[str]:
    """Return the entry points of capabilities that the mesh file names."""
    found = of(mesh)
    declared: list[Function | ActorFunction] = [*found.functions.values(), *found.actor_functions.values()]
    return [each.entry_point for each in declared if not each.is_in_layer]


def with_own_code(mesh: MeshTable) -> list[str]:
    """Return the actors and functions whose code the folder of handlers has."""
    found = of(mesh)
    kinds = {*found.handler_kinds, *(kind for kind, each in found.actor_functions.items() if not each.is_in_layer)}
    actors = [name for name, actor in mesh.actors.items() if actor.kind in kinds]
    return [*actors, *(each.name for each in own_functions(mesh))]


def sweeps_of(mesh: MeshTable) -> dict[str, Clock]:
    """Return when the mesh is swept, by the names of steps and functions, in the order in which one process runs them."""
    found = [each for each in of(mesh).sweeps.values() if each.exists(mesh, each.name)]
    return {each.name: each.called_by for each in found if isinstance(each.called_by, Clock)}


def steps_of(mesh: MeshTable) -> list[Function]:
    """Return the steps of the mesh's clock in their order."""
    return [each for each in of(mesh).steps.values() if each.exists(mesh, each.name)]


def queues_of(mesh: MeshTable) -> dict[str, tuple[Function, Queues]]:
    """Return the consumer of each queue that belongs to no actor, by the name of the queue."""
    return {
        queue: (each, each.called_by)
        for each in functions_of(mesh)
        if isinstance(each.called_by, Queues) and each.name not in mesh.actors
        for queue in each.called_by.names or (each.name,)
    }


def crew_of(mesh: MeshTable) -> list[str]:
    """Return the actors that this mesh brings along."""
    found = of(mesh)
    return [name for name in (*found.crew_of_kinds, *found.crew, *found.on_demand) if name in mesh.actors]


def consumer_of(queue: str, mesh: MeshTable) -> Function | ActorFunction:
    """Return the function that a queue of this mesh calls."""
    return function_of(queue, mesh) if queue in mesh.actors else queues_of(mesh)[queue][0]


def statements_at(queue: str, mesh: MeshTable) -> tuple[Statement, ...]:
    """Return what the consumer of a queue hears there."""
    return tuple(each for each in consumer_of(queue, mesh).hears if each.queue in (None, queue))


def function_of(actor: str, mesh: MeshTable) -> Function | ActorFunction:
    """Return the function of an actor, or that of the mesh's own with this name, or the step of the clock."""
    found = of(mesh)
    own = found.functions.get(actor) or found.steps.get(actor)
    return own or found.actor_functions[mesh.actors[actor].kind]
