"""The plain values of a mesh file during the upgrade of legacy forms, and how values of these forms read."""

import copy
import math
import re
from collections.abc import Callable
from typing import Any

from asya_infra.mesh_file.forms import format_duration
from asya_infra.mesh_file.source import Location, Problem, Source, format_location


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


_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h))+", re.ASCII)
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)", re.ASCII)
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|Ki|Mi|Gi|Ti|k|M|G|T)?", re.ASCII)
_FACTORS = {
    "m": 1e-3,
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
}
_MEGABYTE = 2**20


def as_duration(text: Any) -> str:
    """Convert a duration of Go (`5m0s`, `1h30m`, `90s`) to the form of the mesh file.

    Raises:
        ValueError: the text is not a duration.
    """
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        raise ValueError(f"should be a duration such as 5m0s or 90s; got {text!r}")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    return format_duration(round(seconds, 3))


def as_flag(value: Any) -> bool:
    """Parse `true` or `false`, quoted or not.

    Raises:
        ValueError: the value is not a flag.
    """
    text = str(value).strip().lower()
    if text not in ("true", "false", "1", "0"):
        raise ValueError(f"should be true or false; got {value!r}")
    return text in ("true", "1")


def as_megabytes(quantity: Any) -> int:
    """Parse an amount of memory (`128Mi`, `1Gi`, `512M`) in megabytes, rounded up.

    Raises:
        ValueError: the text is not an amount of memory.
    """
    return math.ceil(_number(quantity, "an amount of memory such as 128Mi or 1Gi") / _MEGABYTE)


def as_cores(quantity: Any) -> float:
    """Parse an amount of CPU (`200m`, `0.5`, `2`) in cores.

    Raises:
        ValueError: the text is not an amount of CPU.
    """
    return _number(quantity, "an amount of CPU such as 200m or 0.5")


def _number(quantity: Any, expected: str) -> float:
    match = _QUANTITY.fullmatch(str(quantity)) if isinstance(quantity, str | int | float) else None
    if match is None or isinstance(quantity, bool):
        raise ValueError(f"should be {expected}; got {quantity!r}")
    return float(match[1]) * _FACTORS[match[2] or ""]
