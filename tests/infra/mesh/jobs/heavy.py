"""Jobs of the mesh that the template tests deploy."""

from typing import Any


def crunch(spark: Any, payload: dict[str, float]) -> Any:
    del spark
    return payload
