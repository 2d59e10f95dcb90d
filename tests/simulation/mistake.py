"""Planted mistakes: patches of the mesh's code that a simulated schedule or a named test must detect."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from tests.simulation.inputs.features import Features

# The calls that a planted mistake could not take: a simulated process may die of the error unseen.
_misfits: list[str] = []


@dataclass(frozen=True)
class Patch:
    """Replaces a public attribute of the mesh's code, or of an AWS service in memory.

    A private name may be renamed or split at any time, and its mistake would then test nothing. So it is an error.

    Attributes:
        replacement: makes the new value from the original; called each time the mistake is planted.
    """

    owner: Any
    name: str
    replacement: Callable[[Any], Any]

    def __post_init__(self) -> None:
        if self.name.startswith("_"):
            raise ValueError(f"{self.name!r} is private; plant the mistake on a public name")

    def start(self, stack: ExitStack) -> None:
        """Replace the attribute until the stack is closed."""
        original = getattr(self.owner, self.name)
        stack.enter_context(mock.patch.object(self.owner, self.name, self.replacement(original)))


@dataclass(frozen=True)
class Mistake:
    """One planted mistake. A schedule finds it, or a test that is named here.

    Attributes:
        patches: the patches that plant it, together.
        kind: the kind of faults that shows the mistake best; None for any.
        seed: the first seed to try; it showed the mistake before.
        features: the features of the schedules.
        tests: ids of tests, each of which fails while the mistake is planted; none if a schedule finds it.
    """

    name: str
    patches: Patch | tuple[Patch, ...]
    kind: str | None = None
    seed: int = 0
    features: Features = frozenset()
    tests: tuple[str, ...] = ()

    @contextmanager
    def plant(self) -> Iterator[None]:
        """Apply the patches.

        Raises:
            TypeError: the mesh calls a function with arguments that the mistake does not take, so its error says nothing.
        """
        _misfits.clear()
        with ExitStack() as stack:
            for patch in self.patches if isinstance(self.patches, tuple) else (self.patches,):
                patch.start(stack)
            yield
        if _misfits:
            raise TypeError(_misfits[0])


def substitute(owner: Any, name: str, other: Any) -> Patch:
    """Replace an attribute."""
    return Patch(owner, name, lambda _: other)


def found_by(name: str, patches: Patch | tuple[Patch, ...], *tests: str) -> Mistake:
    """A mistake that each of these tests finds; their ids begin below `tests/`."""
    return Mistake(name, patches, tests=tuple(f"tests/{test}" for test in tests))


def wrap(owner: Any, name: str, wrong: Callable[..., Any]) -> Patch:
    """Replace a function by one that gets the original as its first argument."""
    signature = inspect.signature(wrong)

    def replacement(real: Any) -> Callable[..., Any]:
        def planted(*args: Any, **more: Any) -> Any:
            try:
                signature.bind(real, *args, **more)
            except TypeError as error:
                _misfits.append(f"{name} is called with other arguments than its mistake takes: {error}")
                raise
            return wrong(real, *args, **more)

        return planted

    return Patch(owner, name, replacement)


def everywhere(owners: tuple[Any, ...], name: str, wrong: Callable[..., Any]) -> tuple[Patch, ...]:
    """Replace a function in its module and in those that have imported it."""
    return tuple(wrap(owner, name, wrong) for owner in owners)
