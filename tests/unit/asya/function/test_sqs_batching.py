"""protocol §4: requests are packed by count and by bytes."""

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from asya.function.sqs import BATCH_BYTES, BATCH_ENTRIES, pack


@dataclass(frozen=True)
class Item:
    size: int


@given(st.lists(st.integers(1, BATCH_BYTES).map(Item)))
def test_every_item_once_in_order_and_every_group_fits(items: list[Item]) -> None:
    groups = list(pack(items))
    assert [item for group in groups for item in group] == items
    for group in groups:
        assert 1 <= len(group) <= BATCH_ENTRIES
        assert sum(item.size for item in group) <= BATCH_BYTES


@given(st.lists(st.integers(1, 50).map(Item)))
def test_no_group_could_have_taken_the_next_item(items: list[Item]) -> None:
    groups = list(pack(items, count=4, size=100))
    for group, following in pairwise(groups):
        assert len(group) == 4 or sum(item.size for item in group) + following[0].size > 100


def test_an_item_that_is_too_large_by_itself_goes_alone() -> None:
    assert [len(group) for group in pack([Item(1), Item(500), Item(1)], size=100)] == [1, 1, 1]
