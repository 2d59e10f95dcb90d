"""Tells the author how tasks end, from the reports of the crew."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from asya.protocol.events import TERMINAL_STATUSES, TaskEvent
from asya.tasks.event_batch import BatchError, read_event, read_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from asya.protocol.mesh_table import MeshTable
    from asya_local.dev.functions import Tell


def tell_ends(event: Mapping[str, Any], table: MeshTable, tell: Tell) -> None:
    """Tell the ends in a batch of the queue of ends; a message that cannot be read is the business of its function."""
    for record in event["Records"]:
        with suppress(BatchError):
            for end in _ends(record["body"].encode("utf-8", "surrogatepass")):
                tell(*_described(end, table))


def _ends(body: bytes) -> Iterator[TaskEvent]:
    for raw in read_list(body):
        report = read_event(raw)
        if isinstance(report, TaskEvent) and (report.status in TERMINAL_STATUSES or report.status == "paused"):
            yield report


def _described(end: TaskEvent, table: MeshTable) -> tuple[str, str]:
    """Return the level and the text of an end. The author has seen the traceback of a handler, but not that of a job."""
    error, data = end.data.error, end.data
    text = f"{end.id} {end.status} at {data.actor}" if data.actor else f"{end.id} {end.status}"
    if end.status == "paused":
        return "end", f"{text}: asya resume {end.id}"
    if error is None:
        return "end", text if end.status == "succeeded" or data.reason is None else f"{text}: {data.reason}"
    actor = table.actors.get(data.actor)
    trace = f"\n{error.traceback.rstrip()}" if actor is not None and actor.kind == "spark" and error.traceback else ""
    return "error", f"{text}: {error.type}: {error.message}{trace}"
