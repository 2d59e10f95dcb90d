"""Packing messages into SendMessageBatch requests: by count *and* by bytes (`protocol §4`). Pure."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from asya.aws.limits import BATCH_BYTES, BATCH_ENTRIES


class Sized(Protocol):
    """Something with a size on the wire."""

    @property
    def size(self) -> int:
        """Bytes."""


Item = TypeVar("Item", bound=Sized)


def packed(items: Iterable[Item]) -> Iterator[list[Item]]:
    """The items in order, in groups that one request takes."""
    group: list[Item] = []
    total = 0
    for item in items:
        if group and (len(group) == BATCH_ENTRIES or total + item.size > BATCH_BYTES):
            yield group
            group, total = [], 0
        group.append(item)
        total += item.size
    if group:
        yield group
