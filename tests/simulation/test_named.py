"""Planted mistakes that a named test finds: it fails while the mistake is planted, and passes without."""

from __future__ import annotations

import os

import pytest

from tests.simulation.mistake import Mistake
from tests.simulation.named_tests import WITHOUT, problems_of_all
from tests.simulation.planted_table import NAMED

# Each mistake has a fork with a pytest of its own, so `make test` has one of twelve.
FULL = bool(os.environ.get("ASYA_FULL_SIZE"))
MISTAKES = NAMED if FULL else NAMED[::12]


@pytest.fixture(scope="module")
def problems() -> dict[str, str]:
    """The problems of all mistakes, from one process that forks for each of them."""
    return problems_of_all(MISTAKES, control=FULL)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_named_test_finds_its_mistake(problems: dict[str, str], mistake: Mistake) -> None:
    assert problems[mistake.name] == ""


@pytest.mark.skipif(not FULL, reason="`make test` itself runs these tests without a mistake")
def test_the_named_tests_pass_without_a_mistake(problems: dict[str, str]) -> None:
    assert problems[WITHOUT] == ""
