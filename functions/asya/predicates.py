"""What declarations may depend on: named predicates over the actor table, and the name of an actor or a function.

A manifest may define further ones of its own, as functions with a name and one sentence: the page of permissions prints it.
"""

from collections.abc import Callable
from typing import Any

from asya.option import Option
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable

Predicate = Callable[[MeshTable, str], bool]
"""Whether a declaration holds in a mesh, for the actor or the function with this name."""

OPTION_OF = "with_option_"
"""The beginning of the names of predicates of options."""


def with_option(option: Option[Any]) -> Predicate:
    """Return the predicate of actors with another value of an option than the default."""

    def has_option(mesh: MeshTable, name: str) -> bool:
        return option.is_set(mesh.actors[name])

    has_option.__name__, has_option.__doc__ = f"{OPTION_OF}{option.key}", f"With `{option.key}`."
    return has_option


def always(_mesh: MeshTable, _name: str) -> bool:
    """In every mesh."""
    return True


def never(_mesh: MeshTable, _name: str) -> bool:
    """In no mesh."""
    return False


def is_actor(mesh: MeshTable, name: str) -> bool:
    """If the actor table has the actor."""
    return name in mesh.actors


_MANY = 50
"""Up to this number of actors, the role of one function has room for the queues and the log groups of all of them."""


def with_many_actors(mesh: MeshTable, _name: str) -> bool:
    """With more than 50 actors."""
    return len(mesh.actors) > _MANY


def with_few_actors(mesh: MeshTable, _name: str) -> bool:
    """With up to 50 actors."""
    return len(mesh.actors) <= _MANY


def with_jobs(mesh: MeshTable, _name: str) -> bool:
    """With heavy actors."""
    return any(actor.kind == "spark" for actor in mesh.actors.values())


def with_pauses(mesh: MeshTable, _name: str) -> bool:
    """With actors that pause tasks."""
    return any(actor.pauses for actor in mesh.actors.values())


def with_holders(mesh: MeshTable, _name: str) -> bool:
    """With pause or wait actors."""
    return any(actor.kind in ("pause", "wait") for actor in mesh.actors.values())


def with_fan_in(mesh: MeshTable, _name: str) -> bool:
    """With fan-in actors."""
    return any(actor.kind == "fan_in" for actor in mesh.actors.values())


def with_tools(mesh: MeshTable, _name: str) -> bool:
    """With tools."""
    return bool(mesh.tools)


def with_triggers(mesh: MeshTable, _name: str) -> bool:
    """With triggers."""
    return bool(mesh.triggers)


def with_webhooks(mesh: MeshTable, _name: str) -> bool:
    """With webhooks."""
    return bool(mesh.webhooks)


def with_chained_triggers(mesh: MeshTable, _name: str) -> bool:
    """With triggers whose tasks start further ones: a lane or a backfill starts the next one when a task ends."""
    return any(trigger.has_lanes or trigger.schedule is not None for trigger in mesh.triggers.values())


def with_callbacks(mesh: MeshTable, _name: str) -> bool:
    """With links that answer pauses."""
    return mesh.has_callbacks


def with_index(mesh: MeshTable, _name: str) -> bool:
    """With an index of results."""
    return mesh.sink.index


def declares_targets(mesh: MeshTable, name: str) -> bool:
    """If the actor has targets of its own."""
    return mesh.actors[name].can_send_to is not None


def sends_everywhere(mesh: MeshTable, name: str) -> bool:
    """If the actor may send to every actor."""
    return mesh.actors[name].can_send_to is None


def deduplicates(mesh: MeshTable, name: str) -> bool:
    """With `deduplicate`."""
    return mesh.actors[name].deduplicate


def has_circuit_breaker(mesh: MeshTable, name: str) -> bool:
    """With a circuit breaker."""
    return mesh.actors[name].resiliency.circuit_breaker is not None


def answers_by_link(mesh: MeshTable, name: str) -> bool:
    """With `callback`."""
    pause = mesh.actors[name].pause
    return pause is not None and pause.callback


def pauses_tasks(mesh: MeshTable, name: str) -> bool:
    """If its wait stops the deadline."""
    return mesh.actors[name].pauses


def only_waits(mesh: MeshTable, name: str) -> bool:
    """If its wait leaves the deadline."""
    return not mesh.actors[name].pauses


def holds_retries(_mesh: MeshTable, name: str) -> bool:
    """At x-wait."""
    return name == names.WAIT


def waits_on_routes(_mesh: MeshTable, name: str) -> bool:
    """At wait actors of the mesh file."""
    return name != names.WAIT
