"""Planted mistakes that a named test finds: it fails while the mistake is planted, and passes without."""

from __future__ import annotations

import pytest

from tests.simulation.mistake import Mistake
from tests.simulation.named_tests import problems_of_all
from tests.simulation.planted_table import NAMED


@pytest.fixture(scope="module")
def problems() -> dict[str, str]:
    """The problems of all mistakes, from one process that forks for each of them."""
    return problems_of_all()


@pytest.mark.parametrize("mistake", NAMED, ids=lambda mistake: mistake.name)
def test_a_named_test_finds_its_mistake(problems: dict[str, str], mistake: Mistake) -> None:
    assert problems[mistake.name] == ""


def test_the_named_tests_pass_without_a_mistake(problems: dict[str, str]) -> None:
    assert problems["without a mistake"] == ""
