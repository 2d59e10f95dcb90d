"""Packs items into requests by count and by bytes (`protocol §4`)."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from asya.function.sqs_limits import BATCH_BYTES, BATCH_ENTRIES


class Sized(Protocol):
    """An item with a size."""

    @property
    def size(self) -> int:
        """The size of the item in a request, in bytes."""


Item = TypeVar("Item", bound=Sized)


def pack(items: Iterable[Item], *, count: int = BATCH_ENTRIES, size: int = BATCH_BYTES) -> Iterator[list[Item]]:
    """Split items into groups that fit into one request each. The order stays.

    Args:
        count: the maximum number of items in a group; the default is the limit of SendMessageBatch.
        size: the maximum bytes of a group; a larger item makes a group of its own.
    """
    group: list[Item] = []
    total = 0
    for item in items:
        if group and (len(group) == count or total + item.size > size):
            yield group
            group, total = [], 0
        group.append(item)
        total += item.size
    if group:
        yield group
