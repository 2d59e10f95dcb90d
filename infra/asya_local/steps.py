"""Measures and reports the steps of starting a cloud."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Step:
    """A completed step and its duration."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Steps:
    """Measures steps and passes each completed step to `report`. Steps may overlap."""

    report: Callable[[Step], None] = lambda _: None

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure the block; a block that raises is not reported."""
        begin = time.monotonic()
        yield
        self.report(Step(name, time.monotonic() - begin))
