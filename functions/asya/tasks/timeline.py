"""A task's hops with their times, one entry per attempt (`protocol §13`, timeline)."""

from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from asya.protocol.hops import HopRecord
from asya.protocol.run_progress import RunNote


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt at one hop; times that nobody reported are left out.

    Attributes:
        message_size_kb, duration_ms: kilobytes of the message, milliseconds of the handler, as reported.
        run: the job run that a heavy actor's hop was in: how far it is, in the end what it took.
    """

    generation: int
    position: int
    attempt: int
    actor: str
    received_at: str | None = None
    processing_at: str | None = None
    completed_at: str | None = None
    message_size_kb: float | None = None
    duration_ms: float | None = None
    run: RunNote | None = None


def timeline(parts: Iterable[HopRecord]) -> Iterator[TimelineEntry]:
    """The entries of hops whose parts come in the order of their places."""
    for place, of_attempt in groupby(parts, key=lambda part: part.key):
        told = list(of_attempt)
        yield TimelineEntry(
            generation=place.generation,
            position=place.position,
            attempt=place.attempt,
            actor=told[0].actor,
            # Where a hop was delivered twice each part may tell of another run: the first word counts, and the last end.
            received_at=min((part.received_at for part in told if part.received_at), default=None),
            processing_at=min((part.processing_at for part in told if part.processing_at), default=None),
            completed_at=max((part.completed_at for part in told if part.completed_at), default=None),
            message_size_kb=max(
                (part.message_size_kb for part in told if part.message_size_kb is not None), default=None
            ),
            duration_ms=max((part.duration_ms for part in told if part.duration_ms is not None), default=None),
            run=max((part.run for part in told if part.run), key=lambda run: run.at, default=None),
        )
