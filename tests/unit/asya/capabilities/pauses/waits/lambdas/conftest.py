"""Fixtures of the functions of waits."""

from collections.abc import Iterator

import pytest

from tests.doubles.waiting import WaitingWorld, waiting_world


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[WaitingWorld]:
    """A mesh with wait actors."""
    with waiting_world(monkeypatch) as world:
        yield world
