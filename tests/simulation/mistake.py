"""How a mistake is planted: something of the mesh's is replaced for a while."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from unittest import mock

Patch = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Mistake:
    """One mistake.

    Attributes:
        plant: within its context the mesh makes it.
        kind: of weather in which it shows best.
        seed: tried before all others, because it showed it the last time.
    """

    name: str
    plant: Patch
    kind: str | None = None
    seed: int = 0


def substitute(owner: Any, name: str, other: Any) -> Patch:
    """Another function in the place of one of the mesh's."""
    return lambda: mock.patch.object(owner, name, other)


def wrap(owner: Any, name: str, wrong: Callable[..., Any]) -> Patch:
    """A function that is given the real one first."""

    def plant() -> AbstractContextManager[Any]:
        real = getattr(owner, name)
        return mock.patch.object(owner, name, lambda *args, **more: wrong(real, *args, **more))

    return plant
