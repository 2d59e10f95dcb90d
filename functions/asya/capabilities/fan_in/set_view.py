"""The set that a task waits for, as the gateway shows it: the slices that are missing (`protocol §13`, set of a task)."""

from collections.abc import Iterator

import msgspec

from asya.capabilities.fan_in.sets import ORIGIN, SetState
from asya.capabilities.legacy.options import numbers_children
from asya.protocol import ids
from asya.protocol.mesh_table import MeshTable
from asya.protocol.times import format_time
from asya.tasks.view import TaskView

GENERATIONS = 5
"""How many generations of a task are searched: a redriven slice 0 waits in the set that an earlier generation opened."""


class MissingSlice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A slice without a result.

    Attributes:
        slice_index: 0 for the origin.
        id: the task of the slice; left out if the actor that fanned out numbers its children (`protocol §14`).
        is_lost: whether the slice has ended without a result.
    """

    slice_index: int
    id: str | None = None
    is_lost: bool = False


class SetView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A set of slices.

    Attributes:
        position: of the hop that fanned out, in the route of the origin.
        slice_count: slices of the set, the origin (slice 0) included.
        arrived: how many slices are stored.
        missing: the others, by index.
        due_at: when the set fails or merges without them (RFC 3339).
        decision: how the set has ended: `merged`, `failed`, `canceled` or `gone`; left out while it waits.
    """

    set_id: str
    position: int
    slice_count: int
    arrived: int
    missing: list[MissingSlice]
    due_at: str
    decision: str | None = None


class TaskSet(msgspec.Struct, frozen=True, kw_only=True):
    """The set that a task waits for, or in which it has ended; None without one."""

    set: SetView | None = None


class SetPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The hop that may have opened a set."""

    origin_id: str
    generation: int
    position: int
    numbers_children: bool

    @property
    def set_id(self) -> str:
        """The id of the set."""
        return ids.set_id(self.origin_id, self.generation, self.position)


def set_places(task: TaskView, mesh: MeshTable) -> Iterator[SetPlace]:
    """Yield the hops that may have opened the set that a task waits for, the likeliest first.

    An incomplete set reports nothing for its origin, so the latest hop of the origin is the one that fanned out. A set that
    has been decided or repeated has put its origin one hop further, to the fan-in actor.
    """
    route = task.route
    if route is None:
        return
    actor = mesh.actors.get(task.actor or route.curr)
    is_at_fan_in = actor is not None and actor.kind == "fan_in" and bool(route.prev)
    position = len(route.prev) - (1 if is_at_fan_in else 0)
    opener = mesh.actors.get(route.prev[-1] if is_at_fan_in else (task.actor or route.curr))
    are_numbered = opener is not None and numbers_children(opener)
    for generation in range(task.generation, max(-1, task.generation - GENERATIONS), -1):
        yield SetPlace(origin_id=task.id, generation=generation, position=position, numbers_children=are_numbered)


def set_view(place: SetPlace, state: SetState) -> SetView:
    """Build the view of a set."""
    missing = state.missing | (frozenset() if state.has_origin else {ORIGIN})
    return SetView(
        set_id=place.set_id,
        position=place.position,
        slice_count=state.slice_count,
        arrived=len(state.arrived),
        missing=[
            MissingSlice(slice_index=index, id=_task_id(place, index), is_lost=index in state.lost)
            for index in sorted(missing)
        ],
        due_at=format_time(state.due_at),
        decision=state.decision.how if state.decision is not None else None,
    )


def _task_id(place: SetPlace, index: int) -> str | None:
    if index == ORIGIN:
        return place.origin_id
    if place.numbers_children:
        return None
    return ids.child_id(place.origin_id, place.generation, place.position, index)
