"""Planted mistakes hang on public names, so a refactoring cannot turn one into a patch without effect."""

from __future__ import annotations

import pytest

from tests.simulation import feature_planted, planted
from tests.simulation.ends import planted as end_planted
from tests.simulation.heavy import planted as heavy_planted
from tests.simulation.mistake import Mistake, substitute


@pytest.mark.parametrize(
    "mistake",
    [*feature_planted.MISTAKES, *end_planted.MISTAKES, *planted.MISTAKES, *heavy_planted.MISTAKES],
    ids=lambda mistake: mistake.name,
)
def test_a_planted_mistake_replaces_public_names_only(mistake: Mistake) -> None:
    patches = mistake.patches if isinstance(mistake.patches, tuple) else (mistake.patches,)

    assert patches
    assert not [patch.name for patch in patches if patch.name.startswith("_")]


def test_a_patch_of_a_private_name_is_an_error() -> None:
    with pytest.raises(ValueError, match="'_check' is private"):
        substitute(planted, "_check", None)
