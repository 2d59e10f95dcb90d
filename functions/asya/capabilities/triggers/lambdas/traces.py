"""Finds out which triggers led to an occurrence, by the record of the task that has caused it (`protocol §16.chain`)."""

from dataclasses import dataclass, replace

from msgspec.structs import replace as replaced

from asya.capabilities.triggers.chains import check_chain, led_by
from asya.capabilities.triggers.occurrences import Occurrence
from asya.protocol import ids
from asya.protocol.task import TaskRecord
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.task_store import TaskStore


@dataclass(frozen=True, slots=True)
class Traces:
    """Traces occurrences back to their tasks.

    Attributes:
        records: the records of tasks.
    """

    services: Services
    records: TaskStore

    def traced(self, occurrence: Occurrence) -> Occurrence:
        """Return an occurrence with the triggers that led to it. One that names no task of the mesh begins a chain.

        Raises:
            UnusableMessageError: too many starts follow from each other.
            TaskStoreError: the table is unavailable.
        """
        task_id = occurrence.cause
        if not ids.is_usable(task_id):
            return occurrence
        cause = self._record(task_id)
        if cause is not None and cause.root_id is not None:
            # The record of a child does not say what has started its root.
            cause = self._record(cause.root_id)
        after = led_by(cause) if cause is not None else ()
        check_chain(occurrence.trigger, after)
        return replace(occurrence, started_by=replaced(occurrence.started_by, after=after))

    def _record(self, task_id: str) -> TaskRecord | None:
        stored = self.records.records([task_id], self.services.now(), consistent=True).get(task_id)
        return stored.record if stored is not None else None
