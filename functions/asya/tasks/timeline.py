"""Builds a task's timeline: one entry for each attempt at a hop (`protocol §13`, timeline)."""

from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from asya.protocol.hops import HopRecord
from asya.protocol.run_progress import RunNote


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt at one hop; unreported times are omitted.

    Attributes:
        message_size_kb, duration_ms: kilobytes of the message and milliseconds of the handler, as reported.
        trace_id: of a trace that X-Ray has.
        run: the progress of a heavy actor's job run; after its end, the time and resources it used.
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
    trace_id: str | None = None
    run: RunNote | None = None


def timeline(records: Iterable[HopRecord]) -> Iterator[TimelineEntry]:
    """Merge hop records, sorted by key, into one entry per attempt."""
    for key, group in groupby(records, key=lambda record: record.key):
        hops = list(group)
        yield TimelineEntry(
            generation=key.generation,
            position=key.position,
            attempt=key.attempt,
            actor=hops[0].actor,
            # After a redelivery the records may stem from different runs: the earliest start and the latest end count.
            received_at=min((hop.received_at for hop in hops if hop.received_at), default=None),
            processing_at=min((hop.processing_at for hop in hops if hop.processing_at), default=None),
            completed_at=max((hop.completed_at for hop in hops if hop.completed_at), default=None),
            message_size_kb=max((hop.message_size_kb for hop in hops if hop.message_size_kb is not None), default=None),
            duration_ms=max((hop.duration_ms for hop in hops if hop.duration_ms is not None), default=None),
            trace_id=next((hop.trace_id for hop in hops if hop.trace_id), None),
            run=_run_note(hops),
        )


def _run_note(hops: list[HopRecord]) -> RunNote | None:
    """The note on the latest run. The one of its end counts: the event of its start may come, and be noted, after that."""
    latest = max((hop.run for hop in hops if hop.run), key=lambda run: run.at, default=None)
    if latest is None:
        return None
    ends = [hop.run for hop in hops if hop.run and hop.stage == "done" and hop.run.run_id == latest.run_id]
    return max(ends or [latest], key=lambda run: run.at)
