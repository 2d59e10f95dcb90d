"""Which hops of a task share an item of the table, and how a reader gets them back in order (`protocol §13`).

The table charges for each item, so the hops of one task that are written together share one. The content of the item decides its
key. So a repeated write replaces the same item. Another grouping of the same reports makes another item, and a reader merges the
hops by their attempts. No write can take a hop out of an item.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import groupby

import msgspec
from msgspec.structs import replace

from asya.protocol.hops import HopKey, HopRecord

SPAN = 32
"""Positions that a group may cover, so that a page of a timeline begins at most as many earlier."""
SIZE_LIMIT = 64 * 1024
"""Bytes of a group, before compression; a table item may have 400 KB."""

_decoder = msgspec.json.Decoder(tuple[HopRecord, ...])


def hop_groups(hops: Iterable[HopRecord]) -> Iterator[tuple[HopRecord, ...]]:
    """Split hops with distinct keys into groups of one generation of a task, each in order.

    A hop that `has_own_item` is alone.
    """
    ordered = sorted(hops, key=lambda hop: (hop.id, hop.generation, hop.has_own_item, *_place(hop)))
    for (_, _, is_alone), of_task in groupby(ordered, key=lambda hop: (hop.id, hop.generation, hop.has_own_item)):
        if is_alone:
            yield from ((hop,) for hop in of_task)
        else:
            yield from _bounded(of_task)


def _bounded(hops: Iterable[HopRecord]) -> Iterator[tuple[HopRecord, ...]]:
    group: list[HopRecord] = []
    size = 0
    for hop in hops:
        length = len(msgspec.json.encode(hop))
        if group and (hop.position >= group[0].position + SPAN or size + length > SIZE_LIMIT):
            yield tuple(group)
            group, size = [], 0
        group.append(hop)
        size += length
    if group:
        yield tuple(group)


def packed(group: Sequence[HopRecord]) -> bytes:
    """The content of an item; the key of the item has the id of the task."""
    return zlib.compress(msgspec.json.encode([replace(hop, id="") for hop in group]))


def unpacked(content: bytes, task_id: str) -> tuple[HopRecord, ...]:
    """The hops of an item.

    Raises:
        msgspec.MsgspecError, zlib.error: the content is not that of `packed`.
    """
    return tuple(replace(hop, id=task_id) for hop in _decoder.decode(zlib.decompress(content)))


def digest(group: Sequence[HopRecord]) -> str:
    """A name for the hops of a group, the same for the same hops."""
    return hashlib.sha256(msgspec.json.encode(group)).hexdigest()[:16]


def in_order(groups: Iterable[Sequence[HopRecord]]) -> Iterator[HopRecord]:
    """The hops of groups in their order; memory grows with the hops of `SPAN` positions only.

    Args:
        groups: ordered by their first hops.
    """
    waiting: list[tuple[tuple[int, int, int, str], int, HopRecord]] = []
    for number, group in enumerate(groups):
        while waiting and waiting[0][0] < _place(group[0]):
            yield heappop(waiting)[-1]
        for hop in group:
            heappush(waiting, (_place(hop), number, hop))
    while waiting:
        yield heappop(waiting)[-1]


def first_place(after: HopKey) -> HopKey:
    """The first hop of a group that may have hops after this one."""
    return HopKey(after.generation, max(0, after.position - SPAN + 1), 0)


def _place(hop: HopRecord) -> tuple[int, int, int, str]:
    return (*hop.key, hop.stage)
