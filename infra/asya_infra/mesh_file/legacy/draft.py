"""The plain values of a mesh file while older forms are put into today's keys."""

import copy
from collections.abc import Callable
from typing import Any

from asya_infra.mesh_file.problems import Problem
from asya_infra.mesh_file.source import Location, Source, dotted


class Draft:
    """A copy of the file's values, and what was wrong with its older forms."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.values: dict[str, Any] = copy.deepcopy(source.values)
        self.problems: list[Problem] = []

    def add_problem(self, place: Location, message: str) -> None:
        """Something is wrong with what stands here."""
        self.problems.append(self._source.problem(place, message))

    def mapping(self, place: Location) -> dict[str, Any] | None:
        """The mapping at a place; None if there is none."""
        value: Any = self.values
        for part in place:
            value = value.get(part) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else None

    def pop(self, place: Location) -> Any:
        """Remove what stands at a place, and give it."""
        holder = self.mapping(place[:-1])
        return None if holder is None else holder.pop(str(place[-1]), None)

    def put(
        self, place: Location, value: Any, origin: Location, *, normal: Callable[[Any], Any] = lambda value: value
    ) -> None:
        """Set a key of today's; if it is set otherwise already, that is told.

        Args:
            origin: where the older form stands.
            normal: brings both values into one form before they are compared.
        """
        for end in range(1, len(place)):
            holder = self.mapping(place[: end - 1])
            if holder is None:
                return  # somebody wrote something else there, and will be told of it
            if holder.get(str(place[end - 1])) is None:
                holder[str(place[end - 1])] = {}
        holder = self.mapping(place[:-1])
        if holder is None:
            return
        key = str(place[-1])
        if holder.get(key) is None:
            holder[key] = value
            self._source.inherit(place, origin)
        elif normal(holder[key]) != normal(value):
            self.add_problem(origin, f"says {_shown(value)}, and {dotted(place)} says {_shown(holder[key])}; keep one")

    def record_origin(self, place: Location, origin: Location) -> None:
        """What stands at `place` now was written at `origin`."""
        self._source.inherit(place, origin)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
