"""Gives the keys that take text the text of the file: `3.10`, and not the number 3.1 that YAML makes of it.

JSON, such as the payload of a trigger, has the number of the file with all its digits (`protocol §1.numbers`).
"""

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from asya.protocol.numbers import read_number
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.source import Location, Source
from asya_infra.mesh_file.text.model_types import keeps_digits, takes_text, type_below

_DECIMAL = re.compile(r"([-+]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?([eE][-+]?[0-9]+)?", re.ASCII)
_TOO_LARGE = "is too large for a number; put it in quotes if it is text"
_TOO_LONG = "has more digits than a number keeps, which would make it {}; write it so, or in quotes if it is text"


class WrittenText:
    """Replaces values by what is written, and finds the numbers whose value is not what is written.

    Attributes:
        problems: the locations of these numbers, each with what is wrong.
    """

    def __init__(self, source: Source, model: type[MeshFile] = MeshFile) -> None:
        self._source, self._model = source, model
        self.problems: dict[Location, str] = {}

    def restore(self, values: dict[str, Any]) -> None:
        """Replace the values of all keys that take text, in place."""
        self._restore(values, self._model, ())

    def _restore(self, value: Any, kind: Any, location: Location) -> Any:
        if isinstance(value, dict):
            for key, inner in value.items():
                value[key] = self._restore(inner, type_below(kind, key, value), (*location, key))
        elif isinstance(value, list):
            value[:] = [
                self._restore(inner, type_below(kind, index), (*location, index)) for index, inner in enumerate(value)
            ]
        elif isinstance(value, bool | int | float) and takes_text(kind, value):
            return self._source.written(location) or value
        elif isinstance(value, float):
            return self._number(value, kind, location)
        return value

    def _number(self, value: float, kind: Any, location: Location) -> float:
        written = self._source.written(location)
        if math.isfinite(value) and keeps_digits(kind) and (text := _json_text(written or "")) is not None:
            return read_number(text)
        self._check(value, location)
        return value

    def _check(self, value: float, location: Location) -> None:
        if not math.isfinite(value):
            self.problems[location] = _TOO_LARGE
        elif (written := self._source.written(location)) is not None and not _is_kept(value, written):
            self.problems[location] = _TOO_LONG.format(value)


def _json_text(written: str) -> str | None:
    """Return a number of YAML as JSON has it: `+.50` is 0.50. None for a form that is none of YAML 1.2's core schema."""
    found = _DECIMAL.fullmatch(written)
    if found is None:
        return None
    sign, whole, fraction, exponent = found.groups(default="")
    point = f".{fraction}" if fraction else "" if exponent else ".0"
    return f"{sign.strip('+')}{whole.lstrip('0') or '0'}{point}{exponent}"


def _is_kept(value: float, written: str) -> bool:
    """Return whether the shortest text of a number has the value of the written one."""
    try:
        return Decimal(written) == Decimal(repr(value))
    except InvalidOperation:
        return False  # an exponent beyond those of decimals
