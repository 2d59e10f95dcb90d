"""The actors that needs name by a group (`asya.needs.Group`), from the actor table."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from asya.capabilities.dead_letters.letters import watched_actors
from asya.needs import Group
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.protocol.triggers import Trigger


def routable_actors(table: MeshTable) -> set[str]:
    """Return every actor that a route of this mesh may contain."""
    return {name for name in table.actors if names.is_routable(name)}


def send_targets(table: MeshTable, actor: str) -> set[str]:
    """Return the actors that an actor may send to: its targets, itself, the end actors and the routable crew.

    Long delays of its retries wait in x-wait.
    """
    declared = table.actors[actor].can_send_to
    crew = names.ROUTABLE_CREW & table.actors.keys()
    if table.actors[actor].retries_after_days:
        crew |= {names.WAIT}
    return {names.SINK, names.SUMP, actor, *crew, *(routable_actors(table) if declared is None else declared)}


def heavy_actors(table: MeshTable) -> list[str]:
    """Return the names of the heavy actors, sorted."""
    return sorted(name for name, actor in table.actors.items() if actor.kind == "spark")


def lingering_actors(table: MeshTable) -> list[str]:
    """Return the names of the heavy actors whose runs linger, sorted."""
    return sorted(name for name, actor in table.actors.items() if actor.spark is not None and actor.spark.linger)


def members(group: Group, table: MeshTable, function: str) -> set[str]:
    """Return the names of a group's queues, or of its actors.

    Args:
        function: the name of the actor or function whose need names the group.
    """
    if group is Group.TARGETS:
        return send_targets(table, function)
    return set(_MEMBERS[group](table))


def _every_actor(table: MeshTable) -> set[str]:
    crew = names.ROUTABLE_CREW & table.actors.keys()
    return {names.SINK, names.SUMP, *crew, *routable_actors(table)}


def _first_actor(table: MeshTable, trigger: Trigger) -> str:
    route = table.tools[trigger.tool].route if trigger.tool is not None else trigger.route
    return route[0]


_MEMBERS: Mapping[Group, Callable[[MeshTable], set[str] | list[str]]] = MappingProxyType(
    {
        Group.EVERY_ACTOR: _every_actor,
        Group.ACTORS: lambda table: set(table.actors),
        Group.FAN_IN: lambda table: {name for name, actor in table.actors.items() if actor.kind == "fan_in"},
        Group.HOOKS: lambda table: set(table.sink.hooks),
        Group.RETRYING: lambda table: {name for name, actor in table.actors.items() if actor.retries_after_days},
        Group.STARTED: lambda table: {_first_actor(table, trigger) for trigger in table.triggers.values()},
        Group.TARGETS_OF_JOBS: lambda table: {
            target for actor in heavy_actors(table) for target in send_targets(table, actor)
        },
        Group.LINGERING: lingering_actors,
        Group.WATCHED: lambda table: set(watched_actors(table)),
        Group.DEAD_LETTERS: lambda table: {f"{name}-dlq" for name in watched_actors(table)},
    }
)
