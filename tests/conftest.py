"""How the suites share two workers: what is dear to set up (a cloud, a Spark session, synthesised templates) is set up once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

TESTS = Path(__file__).parent
TOGETHER = ("cloud", "infra", "spark")
"""Suites whose fixtures last for the session: one worker runs all of such a suite."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Keep each of those suites, and each file of the others, on one worker."""
    for item in items:
        inside = item.path.relative_to(TESTS)
        group = inside.parts[0] if inside.parts[0] in TOGETHER else str(inside)
        item.add_marker(pytest.mark.xdist_group(group))
