"""Tells the author how tasks end, from the reports of the crew."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asya.protocol.events import TERMINAL_STATUSES, TaskEvent
from asya.tasks.event_batch import BatchError, read_event, read_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from asya.protocol.mesh_table import MeshTable
    from asya_local.dev.functions import Tell


@dataclass
class Ends:
    """Tells each end once: an envelope that fails is reported by x-sump, and again when its end is final."""

    tell: Tell
    _told: deque[tuple[str, int, str]] = field(default_factory=lambda: deque(maxlen=10_000))

    def read(self, event: Mapping[str, Any], table: MeshTable) -> None:
        """Tell the ends in a batch of the queue of ends; a message that cannot be read is the business of its function."""
        for record in event["Records"]:
            with suppress(BatchError):
                for end in _ends(record["body"].encode("utf-8", "surrogatepass")):
                    key = (end.id, end.generation, end.status)
                    if key not in self._told:
                        self._told.append(key)
                        self.tell(*_described(end, table))


def _ends(body: bytes) -> Iterator[TaskEvent]:
    for raw in read_list(body):
        report = read_event(raw)
        if isinstance(report, TaskEvent) and (report.status in TERMINAL_STATUSES or report.status == "paused"):
            yield report


def _described(end: TaskEvent, table: MeshTable) -> tuple[str, str]:
    """Return the level and the text of an end; an error is told once, so that of a handler's traceback is not told here."""
    error, data = end.data.error, end.data
    text = f"{end.id} {end.status} at {data.actor}" if data.actor else f"{end.id} {end.status}"
    if end.status == "paused":
        return "end", f"{text}: asya resume {end.id}"
    if error is None:
        return "end", text if end.status == "succeeded" or data.reason is None else f"{text}: {data.reason}"
    summary, trace = f"{error.type}: {error.message}", error.traceback.rstrip()
    if not trace:
        return "error", f"{text}: {summary}"
    actor = table.actors.get(data.actor)
    if actor is None or actor.kind not in {"spark", "end"}:
        return "error", text
    if trace.endswith(summary):
        return "error", f"{text}:\n{trace}"
    return "error", f"{text}: {summary}\n{trace}"
