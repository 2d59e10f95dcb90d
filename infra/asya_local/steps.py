"""What takes how long while a cloud comes up, told as it happens."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Step:
    """Something that was done, and the seconds it took."""

    name: str
    seconds: float


@dataclass
class Steps:
    """Measures steps; `report` hears of each when it ends. Steps may overlap."""

    report: Callable[[Step], None] = lambda _: None
    done: list[Step] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure what happens inside; a step that fails is not told."""
        begin = time.monotonic()
        yield
        step = Step(name, time.monotonic() - begin)
        self.done.append(step)
        self.report(step)
