"""Planted mistakes: patches of the mesh's code that the simulation must detect."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from unittest import mock

Patch = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Mistake:
    """One planted mistake.

    Attributes:
        plant: the context manager that patches the mesh.
        kind: the weather that shows the mistake best; None for any.
        seed: the first seed to try; it showed the mistake before.
    """

    name: str
    plant: Patch
    kind: str | None = None
    seed: int = 0


def substitute(owner: Any, name: str, other: Any) -> Patch:
    """Replace an attribute of the mesh's code."""
    return lambda: mock.patch.object(owner, name, other)


def wrap(owner: Any, name: str, wrong: Callable[..., Any]) -> Patch:
    """Replace a function by one that gets the original as its first argument."""

    def plant() -> AbstractContextManager[Any]:
        real = getattr(owner, name)
        return mock.patch.object(owner, name, lambda *args, **more: wrong(real, *args, **more))

    return plant
