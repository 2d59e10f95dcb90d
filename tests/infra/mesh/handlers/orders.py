"""Handlers of the mesh that the template tests deploy."""

from dataclasses import dataclass
from typing import Any


@dataclass
class Scored:
    Ref: str
    score: float


class Intake:
    def take(self, payload: Any) -> Any:
        return payload


def score(payload: Any) -> Scored:
    return payload
