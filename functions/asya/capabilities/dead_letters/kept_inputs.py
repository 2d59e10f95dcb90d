"""Decides which kept inputs of hops count, and what they may say (`protocol §12.input.counts`, `§12.input.content`).

The role of an actor may write its own input of every hop of every task, so its code may forge them. A replay from such an input
starts at this actor, which could as well send the forged envelope itself. It sends it on by its own role, so only where it may.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from asya.function.targets import actual_actor
from asya.protocol import headers
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Envelope, Route
from asya.protocol.hops import HopRecord
from asya.protocol.keys import InputName, input_key, read_input_name
from asya.tasks.view import TaskView

ReadHops = Callable[[], Iterable[HopRecord]]
"""Reads the reports about the hops of a task, of all generations."""


@dataclass(frozen=True, slots=True)
class KeptInput:
    """A stored input.

    Attributes:
        name: what its key says.
        size: bytes.
    """

    uri: str
    name: InputName
    size: int


@dataclass(frozen=True, slots=True)
class KeptInputs:
    """The stored inputs of a task, by position.

    Attributes:
        counting: those that a replay may start from.
        doubted: why no input of a position counts.
    """

    counting: Mapping[int, KeptInput] = field(default_factory=dict)
    doubted: Mapping[int, str] = field(default_factory=dict)


def read_kept_inputs(folder: str, objects: Iterable[tuple[str, int]]) -> Iterator[KeptInput]:
    """Yield the inputs among the objects below a folder; others have no key of an input.

    Args:
        objects: their addresses and sizes.
    """
    for uri, size in objects:
        name = read_input_name(uri.removeprefix(folder))
        if name is not None:
            yield KeptInput(uri, name, size)


def counting_inputs(inputs: Iterable[KeptInput], task: TaskView | None, read_hops: ReadHops) -> KeptInputs:
    """Choose the inputs that count: one for each position, of the actor that the record of the task names there.

    Args:
        task: None without a record.
        read_hops: called only if the record has to say whose hops they were.
    """
    listed = sorted(inputs, key=lambda each: (each.name.position, each.name))
    named = _Named.of(task, read_hops) if listed and task is not None else None
    counting, doubted = {}, {}
    for position, group in groupby(listed, key=lambda each: each.name.position):
        kept = list(group)
        chosen = _of_one_actor(kept) if named is None else named.choose(kept)
        if chosen is not None:
            counting[position] = chosen
        else:
            actors = ", ".join(sorted({repr(each.name.actor) for each in kept}))
            why = (
                "and no record says whose hop it was"
                if named is None
                else "but the record of the task names none of them"
            )
            doubted[position] = f"such are stored by {actors}, {why}"
    return KeptInputs(counting, doubted)


@dataclass(frozen=True, slots=True)
class _Named:
    """Which actors the record of a task names.

    Attributes:
        generation: the present one.
        reported: the actors that have reported a hop, by generation and position.
    """

    generation: int
    route: Route | None
    reported: Mapping[tuple[int, int], set[str]]

    @classmethod
    def of(cls, task: TaskView, read_hops: ReadHops) -> "_Named":
        reported: dict[tuple[int, int], set[str]] = defaultdict(set)
        for hop in read_hops():
            reported[hop.generation, hop.position].add(hop.actor)
        return cls(task.generation, task.route, dict(reported))

    def choose(self, kept: Sequence[KeptInput]) -> KeptInput | None:
        """Choose the input of the latest generation whose actor is named."""
        found = [each for each in kept if each.name.generation <= self.generation and self._names(each.name)]
        return found[-1] if found else None

    def _names(self, name: InputName) -> bool:
        """Whether the actor alone has reported the hop, or else is in the route, which knows of no overrides."""
        reported = self.reported.get((name.generation, name.position), set())
        if len(reported) == 1:
            return name.actor in reported
        # Reports may be late or lost, and an earlier holder of the task may forge one of a later hop.
        return self.route is not None and self.route.actor_at(name.position) == name.actor


def _of_one_actor(kept: Sequence[KeptInput]) -> KeptInput | None:
    """The latest input, if all are of one actor."""
    return kept[-1] if len({each.name.actor for each in kept}) == 1 else None


def mismatch(stored: Envelope, uri: str) -> str | None:
    """Why an object is not the input that its key names; None if it is."""
    actor = actual_actor(stored, stored.route.curr)
    if uri.removeprefix("s3://").partition("/")[2] != input_key(stored, actor):
        hop = f"hop {stored.route.position} of generation {stored.generation}"
        return f"{uri} is not the input that its key names: it continues {stored.id!r} at {actor!r}, {hop}"
    if headers.PAYLOAD_REF in stored.headers:
        return (
            f"{uri} is not the input that its key names: it refers to a payload, and an actor keeps the payload itself"
        )
    return None


def check_input(stored: Envelope, uri: str) -> None:
    """Check that an object is the input that its key names.

    Raises:
        ApiError: 409 with what it is instead.
    """
    problem = mismatch(stored, uri)
    if problem is not None:
        raise ApiError(
            409, "input_mismatch", f"{problem}; code of the actor in the key has written it, so start elsewhere"
        )
