"""Filters of notifications: they have all keys that are wanted, and S3 takes them."""

from itertools import combinations
from random import Random

import pytest

from asya.capabilities.triggers.sources.new_objects import MOST_FILTERS, KeyFilter, notification_filters


@pytest.mark.rule("16.objects.notifications")
@pytest.mark.parametrize(
    ("wanted", "filters"),
    [
        ([], []),
        ([("raw/", ".csv"), ("raw/", ".csv")], [("raw/", ".csv")]),
        ([("raw/", ".csv"), ("raw/", ".json")], [("raw/", ".csv"), ("raw/", ".json")]),
        ([("raw/", ".csv"), ("clean/", ".csv")], [("clean/", ".csv"), ("raw/", ".csv")]),
        ([("raw/", ".csv"), ("raw/big/", "")], [("raw/", "")]),
        ([("raw/", ".gz"), ("raw/", ".csv.gz")], [("raw/", ".gz")]),
        # The third overlaps both of the others, which do not overlap.
        ([("raw/a", ".csv"), ("raw/b", ".csv"), ("raw/", "")], [("raw/", "")]),
        # What S3 wants encoded is left out, and everything beyond it.
        ([("raw/new flights/", ".csv")], [("raw/new", ".csv")]),
        ([("raw/", "é.csv")], [("raw/", ".csv")]),
        ([("raw/", "+")], [("raw/", "")]),
    ],
)
def test_16_filters_that_would_overlap_are_joined(
    wanted: list[tuple[str, str]], filters: list[tuple[str, str]]
) -> None:
    """S3 refuses two filters whose prefixes and suffixes both overlap."""
    assert notification_filters(KeyFilter(*each) for each in wanted) == tuple(KeyFilter(*each) for each in filters)


@pytest.mark.rule("16.objects.notifications")
def test_16_a_hundred_filters_have_the_keys_of_any_number_of_triggers() -> None:
    random = Random(16)
    for count in (1, 40, 250):
        wanted = [
            KeyFilter("/".join(random.choices("abcdef", k=random.randint(0, 4))), random.choice(["", ".csv", ".gz"]))
            for _ in range(count)
        ] + [KeyFilter(f"{number:03}/", f".{number}") for number in range(count)]
        filters = notification_filters(wanted)
        assert len(filters) <= MOST_FILTERS
        for each in wanted:
            assert sum(found.matches(f"{each.prefix}{each.suffix}") for found in filters) >= 1, each
        for one, other in combinations(filters, 2):
            prefixes = one.prefix.startswith(other.prefix) or other.prefix.startswith(one.prefix)
            suffixes = one.suffix.endswith(other.suffix) or other.suffix.endswith(one.suffix)
            assert not (prefixes and suffixes), (one, other)


def test_the_closest_filters_are_joined_first() -> None:
    """Distant folders keep filters of their own, so few other keys are told of."""
    wanted = [KeyFilter(f"raw/{number:03}/") for number in range(150)] + [KeyFilter("photos/")]
    filters = notification_filters(wanted)
    assert KeyFilter("photos/") in filters
    assert all(each.prefix for each in filters)
