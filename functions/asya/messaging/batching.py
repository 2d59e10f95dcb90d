"""Packing things into requests: by count *and* by bytes (`protocol §4`). Pure."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from asya.messaging.sqs_limits import BATCH_BYTES, BATCH_ENTRIES


class Sized(Protocol):
    """Something with a size on the wire."""

    @property
    def size(self) -> int:
        """Bytes."""


Item = TypeVar("Item", bound=Sized)


def pack(items: Iterable[Item], *, count: int = BATCH_ENTRIES, size: int = BATCH_BYTES) -> Iterator[list[Item]]:
    """The items in order, in groups that one request takes.

    Args:
        count: items in a group at most; by default what SendMessageBatch takes.
        size: their bytes in total at most; an item that is larger by itself goes alone.
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
