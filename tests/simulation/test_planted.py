"""Planted mistakes hang on public names, so a refactoring cannot turn one into a patch without effect."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest

from asya.ends import ending
from tests.paths import PROJECT
from tests.simulation.mistake import Mistake, substitute, wrap
from tests.simulation.planted import delivery
from tests.simulation.planted_table import HEAVY, LIGHT, NAMED, PAGE, as_page


@pytest.mark.parametrize("mistake", [*LIGHT, *HEAVY, *NAMED], ids=lambda mistake: mistake.name)
def test_a_planted_mistake_replaces_public_names_only(mistake: Mistake) -> None:
    patches = mistake.patches if isinstance(mistake.patches, tuple) else (mistake.patches,)

    assert patches
    assert not [patch.name for patch in patches if patch.name.startswith("_")]


def test_a_patch_of_a_private_name_is_an_error() -> None:
    with pytest.raises(ValueError, match="'_check' is private"):
        substitute(delivery, "_check", None)


def test_a_mistake_that_does_not_take_the_arguments_of_a_call_is_an_error() -> None:
    mistake = Mistake("fails", wrap(ending, "report_time", lambda real, now: real(None, now)))

    with (
        pytest.raises(TypeError, match="report_time is called with other arguments"),
        mistake.plant(),
        suppress(TypeError),
    ):
        ending.report_time(None, datetime(2026, 11, 25, tzinfo=UTC))


def test_the_page_lists_all_planted_mistakes() -> None:
    assert PAGE.read_text(encoding="utf-8") == as_page(), "run python -m tests.simulation.planted_table"


def test_names_are_unique() -> None:
    names = [mistake.name for mistake in (*LIGHT, *HEAVY, *NAMED)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("test", sorted({test for mistake in NAMED for test in mistake.tests}))
def test_a_named_test_exists(test: str) -> None:
    file, _, function = test.partition("::")
    assert f"def {function.partition('[')[0]}(" in (PROJECT / file).read_text(encoding="utf-8")
