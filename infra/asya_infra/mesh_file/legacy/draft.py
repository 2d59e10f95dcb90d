"""The plain values of a mesh file during the upgrade of legacy forms."""

import copy
from collections.abc import Callable
from typing import Any

from asya_infra.mesh_file.problems import Problem
from asya_infra.mesh_file.source import Location, Source, format_location


class Draft:
    """A copy of the file's values, and the problems of its legacy forms."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.values: dict[str, Any] = copy.deepcopy(source.values)
        self.problems: list[Problem] = []

    def add_problem(self, place: Location, message: str) -> None:
        """Add a problem with the value at a location."""
        self.problems.append(self._source.problem(place, message))

    def mapping(self, place: Location) -> dict[str, Any] | None:
        """Return the mapping at a location; None for any other value."""
        value: Any = self.values
        for part in place:
            value = value.get(part) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else None

    def pop(self, place: Location) -> Any:
        """Remove and return the value at a location; None without one."""
        holder = self.mapping(place[:-1])
        return None if holder is None else holder.pop(str(place[-1]), None)

    def put(
        self, place: Location, value: Any, origin: Location, *, normal: Callable[[Any], Any] = lambda value: value
    ) -> None:
        """Set a current key. A different value that exists already is a problem.

        Args:
            place: the location of the current key.
            value: the value.
            origin: the location of the legacy form.
            normal: normalizes both values before the comparison.
        """
        for end in range(1, len(place)):
            holder = self.mapping(place[: end - 1])
            if holder is None:
                return  # not a mapping, which the validation reports
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
            current = f"{format_location(place)} is {_format(holder[key])}"
            self.add_problem(origin, f"is {_format(value)}, but {current}; keep one of them")

    def record_origin(self, place: Location, origin: Location) -> None:
        """Record that the value at `place` was written at `origin`."""
        self._source.inherit(place, origin)


def _format(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
