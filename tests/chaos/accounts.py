"""Accounts for a chaos run: compares what must have become of each envelope with the evidence.

A violation is anything that an operator would call lost, repeated, wrong or left over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.chaos.statuses import TERMINAL, steps_back
from tests.chaos.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.chaos.envelopes import ChaosEnvelope
    from tests.chaos.statuses import Sighting


@dataclass(frozen=True)
class Record:
    """The record of a task at the end."""

    status: str
    reason: str = ""
    actor: str = ""
    error: str = ""
    parent_id: str = ""


@dataclass(frozen=True)
class Stored:
    """A result object."""

    phase: str
    payload: Any = None
    at: float = 0.0
    """When it was written, in seconds after the beginning of the load."""


@dataclass(frozen=True)
class Evidence:
    """What is left after a run.

    Attributes:
        ids: The ids of the accepted envelopes, by name.
        records: By task id.
        objects: The result objects by envelope id, of all phases.
        effects: How often each actor noted each name.
        queues: The messages of each queue that has any; `delayed` ones count for fan-in actors only.
        timers: The delayed messages of fan-in actors.
        sightings: All readings of statuses, by task id, a list for each source.
        finals: The number of `final` events of each stream that ended; a replaced provisional one is left out.
        superseded: The number of results that lost to another end and are kept beside it.
    """

    ids: Mapping[str, str]
    records: Mapping[str, Record]
    objects: Mapping[str, Sequence[Stored]]
    effects: Mapping[tuple[str, str], int] = field(default_factory=dict)
    queues: Mapping[str, int] = field(default_factory=dict)
    timers: int = 0
    sightings: Sequence[Mapping[str, Sequence[Sighting]]] = ()
    finals: Mapping[str, int] = field(default_factory=dict)
    superseded: int = 0


def violations(envelopes: Sequence[ChaosEnvelope], evidence: Evidence) -> list[Violation]:
    """All violations: of the envelopes in their order, then of the rest."""
    result: list[Violation] = []
    for envelope in envelopes:
        result += _of_envelope(envelope, evidence)
    result += _strangers(envelopes, evidence)
    for sightings in evidence.sightings:
        result += steps_back(sightings)
    result += [
        Violation("final events", f"the stream of {each} had {count} final events instead of one", each)
        for each, count in evidence.finals.items()
        if count != 1
    ]
    result += [
        Violation("queue not empty", f"{count} messages are left on {queue}")
        for queue, count in evidence.queues.items()
    ]
    return result


def accounted(envelopes: Sequence[ChaosEnvelope], evidence: Evidence) -> int:
    """Count the envelopes without any violation of their own."""
    return sum(not list(_of_envelope(envelope, evidence)) for envelope in envelopes)


def _of_envelope(envelope: ChaosEnvelope, evidence: Evidence) -> Iterator[Violation]:
    envelope_id = evidence.ids.get(envelope.name)
    if envelope_id is None:
        yield Violation("not accepted", f"{envelope.name} ({envelope.flow}) was never accepted")
        return
    name = f"{envelope_id} ({envelope.name}, {envelope.flow})"
    wrong_ends = list(_of_end(name, envelope_id, evidence))
    if wrong_ends:  # that its slices and effects are missing follows from it
        yield from wrong_ends
        return
    objects = evidence.objects.get(envelope_id, ())
    if [each.phase for each in objects] == ["succeeded"] and objects[0].payload != envelope.result:
        text = f"{name} has the result {objects[0].payload!r} instead of {envelope.result!r}"
        yield Violation("wrong result", text, envelope_id)
    for child in envelope.children(envelope_id):
        record = evidence.records.get(child)
        if record is None or record.status != "succeeded":
            status = "no record" if record is None else _said(record)
            yield Violation("wrong end of a slice", f"the slice {child} of {name}: {status}", child)
    for actor, names in envelope.effects.items():
        for missing in sorted(each for each in names if not evidence.effects.get((actor, each))):
            yield Violation("missing effect", f"{actor} noted no call for {missing} of {name}", envelope_id)


def _of_end(name: str, envelope_id: str, evidence: Evidence) -> Iterator[Violation]:
    record = evidence.records.get(envelope_id)
    phases = sorted(each.phase for each in evidence.objects.get(envelope_id, ()))
    stored = f"its objects: {', '.join(phases) or 'none'}"
    if record is None:
        yield Violation("no record", f"{name} has no record; {stored}", envelope_id)
    elif record.status not in TERMINAL:
        yield Violation("no end", f"{name} is {_said(record)}; {stored}", envelope_id)
    elif record.status != "succeeded":
        yield Violation("wrong end", f"{name} {_said(record)}; {stored}", envelope_id)
    elif not phases:
        yield Violation("no object", f"{name} succeeded without a result object", envelope_id)
    # x-sump keeps a copy of a failed envelope, beside the object of x-sink or alone.
    ends = sorted({"failed" if each == "sump" else each for each in phases})
    if len(phases) > len(set(phases)) or len(ends) > 1:
        yield Violation("several objects", f"{name} has the objects {', '.join(phases)}", envelope_id)
    elif ends and record is not None and record.status in TERMINAL and ends != [record.status]:
        yield Violation("object and record", f"{name} {record.status}; {stored}", envelope_id)


def _said(record: Record) -> str:
    """What a record says, in a few words."""
    at = f" at {record.actor}" if record.actor else ""
    return f"{record.status} {record.reason}{at}{f': {record.error}' if record.error else ''}".strip()


def _strangers(envelopes: Sequence[ChaosEnvelope], evidence: Evidence) -> Iterator[Violation]:
    """Tasks and objects that belong to no started envelope."""
    known = set(evidence.ids.values())
    for envelope in envelopes:
        if envelope.name in evidence.ids:
            known.update(envelope.children(evidence.ids[envelope.name]))
    for task_id in sorted(evidence.records.keys() - known):
        record = evidence.records[task_id]
        origin = f", a child of {record.parent_id}" if record.parent_id else ""
        yield Violation("unknown task", f"{task_id}{origin}: {_said(record)}", task_id)
    for task_id in sorted(evidence.objects.keys() - known - evidence.records.keys()):
        phases = ", ".join(each.phase for each in evidence.objects[task_id])
        yield Violation("unknown object", f"{task_id} has the objects {phases}, and no record", task_id)
