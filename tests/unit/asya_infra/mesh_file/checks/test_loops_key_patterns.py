"""Patterns of keys: whether some key matches two of them, compared with all short keys."""

from fnmatch import fnmatchcase
from itertools import product

import pytest

from asya_infra.mesh_file.checks.loops import intersect, patterns_of

KEYS = ["".join(key) for length in range(5) for key in product("ab/", repeat=length)]
PATTERNS = ["".join(pattern) for length in range(4) for pattern in product("ab*?", repeat=length)]


def test_two_patterns_intersect_if_some_key_matches_both() -> None:
    """Patterns of three characters with a common key have one of four characters."""
    keys_of = {pattern: {key for key in KEYS if fnmatchcase(key, pattern)} for pattern in PATTERNS}
    wrong = [
        (one, other)
        for one, other in product(PATTERNS, repeat=2)
        if len((one + other).replace("*", "")) <= 4 and intersect(one, other) != bool(keys_of[one] & keys_of[other])
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("prefix", "suffix"), [("a/", "b"), ("a", "ab"), ("ab", "ab"), ("", "b"), ("a", ""), ("ba", "a")]
)
def test_prefix_and_suffix_may_share_characters(prefix: str, suffix: str) -> None:
    patterns = patterns_of(prefix, suffix)
    for key in KEYS:
        assert any(fnmatchcase(key, each) for each in patterns) == (key.startswith(prefix) and key.endswith(suffix)), (
            key
        )
