"""Gives the keys that take text the text of the file: `3.10`, and not the number 3.1 that YAML makes of it."""

import math
from typing import Any

from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.model_types import takes_text, type_below
from asya_infra.mesh_file.source import Location, Source

TOO_LARGE = "is too large for a number; put it in quotes if it is text"


class WrittenText:
    """Replaces values by what is written.

    Attributes:
        too_large: the locations of numbers that are beyond any float, and no text.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.too_large: list[Location] = []

    def restore(self, values: dict[str, Any]) -> None:
        """Replace the values of all keys that take text, in place."""
        self._restore(values, MeshFile, ())

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
        elif isinstance(value, float) and not math.isfinite(value):
            self.too_large.append(location)
        return value
