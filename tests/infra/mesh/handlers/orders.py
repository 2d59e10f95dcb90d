"""Handlers of the mesh that the template tests deploy."""

from typing import Any


class Intake:
    def take(self, payload: Any) -> Any:
        return payload


def score(payload: Any) -> Any:
    return payload
