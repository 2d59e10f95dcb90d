"""What is kept, shortly, of the messages that handlers send to those who look on (`protocol §7`, FLY; `§13`, stream).

Messages of one run of a hop that come together make one part: writes are what costs.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

import msgspec
from msgspec import Raw

from asya.protocol.events import PartialEvent

# Bytes of messages in one part; an item of the table ends at 400 KB.
PART_LIMIT = 200 * 1024


class PartialKey(NamedTuple):
    """Where a message belongs, in the order in which they are said."""

    generation: int
    position: int
    attempt: int
    receive: int
    sequence: int


class Partial(msgspec.Struct, frozen=True, kw_only=True):
    """One message; `sequence` counts those of its run of the hop from 0."""

    sequence: int
    at: str
    data: Raw


class PartialBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Some messages of one run of a hop, in order.

    Attributes:
        receive: tells the runs of one attempt apart: a redelivered hop says everything again.
    """

    id: str
    generation: int
    position: int
    attempt: int
    receive: int
    actor: str
    messages: tuple[Partial, ...]

    @property
    def place(self) -> PartialKey:
        """Where its first message belongs."""
        return PartialKey(self.generation, self.position, self.attempt, self.receive, self.messages[0].sequence)


def partial_batches(events: Iterable[PartialEvent]) -> Iterator[PartialBatch]:
    """The parts to write for these messages, each run's in order; what came twice is there once."""
    for run, said in groupby(sorted(events, key=_place), key=_run):
        by_sequence = {event.sequence: event for event in said}
        task_id, generation, position, attempt, receive = run
        for some in _bounded(by_sequence.values()):
            yield PartialBatch(
                id=task_id,
                generation=generation,
                position=position,
                attempt=attempt,
                receive=receive,
                actor=some[0].actor,
                messages=tuple(Partial(sequence=each.sequence, at=each.at, data=each.data) for each in some),
            )


def _bounded(events: Iterable[PartialEvent]) -> Iterator[list[PartialEvent]]:
    some: list[PartialEvent] = []
    size = 0
    for event in events:
        length = len(bytes(event.data)) + 128
        if some and size + length > PART_LIMIT:
            yield some
            some, size = [], 0
        some.append(event)
        size += length
    if some:
        yield some


def _run(event: PartialEvent) -> tuple[str, int, int, int, int]:
    return (event.id, event.generation, event.position, event.attempt, event.receive)


def _place(event: PartialEvent) -> tuple[str, int, int, int, int, int]:
    return (*_run(event), event.sequence)
