"""Starts the task of an occurrence, once (`protocol §16.start`)."""

from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from asya.capabilities.triggers.occurrences import Occurrence, submission_of
from asya.sidecar.lambdas.services import Services
from asya.tasks.starts.aws.task_starter import TaskStarter
from asya.tasks.starts.idempotency import IdempotencyKey
from asya.tasks.starts.submission import Origin, first_message
from asya.tasks.starts.tool_schemas import validate

FINAL = (400, 404, 413)
"""These answers of a start are final: a repetition has the same."""


@dataclass(frozen=True, slots=True)
class OccurrenceStarts:
    """Starts the tasks of occurrences.

    Attributes:
        new_span: creates a span id of 16 hexadecimal digits.
    """

    services: Services
    starter: TaskStarter
    new_span: Callable[[], str]

    def start(self, occurrence: Occurrence) -> None:
        """Start the task of an occurrence, once.

        Raises:
            ApiError: the start was refused, or somebody else is at it.
            TaskStoreError: the table is unavailable.
        """
        mesh = self.services.settings.table
        trigger = mesh.triggers[occurrence.trigger]
        if not trigger.enabled:
            self.services.telemetry.log.info("the trigger is off", trigger=occurrence.trigger, key=occurrence.key)
            return
        submission = submission_of(trigger, occurrence.payload, mesh, validate)
        origin = Origin(gateway_url=self.services.settings.gateway_url or "", span=self.new_span())
        compose = first_message(submission, origin, mesh)
        key = IdempotencyKey(occurrence.owner, occurrence.key, "")
        self._note_at_slot(occurrence)
        task_id = self.starter.start_once(
            compose,
            key,
            occurrence.task_id,
            self.services.now(),
            lambda record: replace(record, started_by=occurrence.started_by),
        )
        self.services.telemetry.count("TriggersFired")
        self.services.telemetry.log.info(
            "task started", trigger=occurrence.trigger, key=occurrence.key, envelope_id=task_id
        )

    def _note_at_slot(self, occurrence: Occurrence) -> None:
        """Name the task in the record of the slot's first task: its success overtakes the failure of that one.

        The note comes before the start. It says nothing until the task has succeeded.
        """
        first, task_id = occurrence.slot_task_id, occurrence.task_id
        if first is not None and first != task_id:
            self.starter.tasks.update(first, lambda record, _: record.overtaken_by(task_id), self.services.now())
