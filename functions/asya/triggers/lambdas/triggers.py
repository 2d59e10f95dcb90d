"""x-triggers: turns the messages of all sources into starts of tasks (`protocol §16`).

A start claims the key of its occurrence, writes the record, then sends the first message. A repeated message finds the key; one
that comes after a crash finishes the start with the same id.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from asya.messaging.aws.receipt import Receipt
from asya.messaging.lambdas.batch import BatchProcessor, BatchResponse, Record, records
from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import MeshTable
from asya.sidecar.lambdas.services import Services
from asya.starts.aws.task_starter import TaskStarter
from asya.starts.idempotency import IdempotencyKey
from asya.starts.submission import Origin, first_message
from asya.starts.tool_schemas import validate
from asya.triggers.aws.failed_messages import FailedMessages
from asya.triggers.ends import read_end_notice
from asya.triggers.messages import UnusableMessageError, read_occurrences
from asya.triggers.new_objects import Buckets
from asya.triggers.occurrences import Occurrence, submission_of
from asya.triggers.service_messages import read_service_message

# These answers of a start are final: a repetition has the same.
_FINAL = (400, 404, 413)


@dataclass(frozen=True, slots=True)
class TriggerQueue:
    """Processes the messages of `x-triggers`.

    Attributes:
        new_span: creates a span id of 16 hexadecimal digits.
    """

    services: Services
    worker: BatchProcessor
    starter: TaskStarter
    failed: FailedMessages
    new_span: Callable[[], str]

    @property
    def mesh(self) -> MeshTable:
        """The table of the mesh."""
        return self.services.settings.table

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch. A message that cannot start its tasks now stays on the queue."""
        try:
            return self.worker.process(records(event), self._handle)
        finally:
            self.services.telemetry.flush()

    def _handle(self, record: Record) -> list[Receipt]:
        problems: list[str] = []
        try:
            occurrences = self._occurrences(record)
        except UnusableMessageError as error:
            occurrences, problems = [], [str(error)]
        for occurrence in occurrences:
            # One that is refused stops no other: an object may have several triggers.
            try:
                self._start(occurrence)
            except ApiError as error:
                if error.status not in _FINAL:
                    raise
                problems.append(f"{error.code}: {error}")
        if problems:
            self._give_up(record, "; ".join(problems))
        return []

    def _occurrences(self, record: Record) -> list[Occurrence]:
        settings = self.services.settings
        buckets = Buckets(settings.data_uri, settings.results_uri)
        of_service = read_service_message(record.arrival, self.mesh, buckets)
        if of_service is not None:
            return of_service
        if not self.services.admission.has_role(record.arrival):
            raise UnusableMessageError(f"the sender {record.arrival.sender} is no role of the mesh")
        if read_end_notice(record.arrival.body) is not None:
            return []
        return read_occurrences(record.arrival.body, self.mesh)

    def _start(self, occurrence: Occurrence) -> None:
        """Start the task of an occurrence, once.

        Raises:
            ApiError: the start was refused, or somebody else is at it.
            TaskStoreError: the table is unavailable.
        """
        trigger = self.mesh.triggers[occurrence.trigger]
        if not trigger.enabled:
            self.services.telemetry.log.info("the trigger is off", trigger=occurrence.trigger, key=occurrence.key)
            return
        submission = submission_of(trigger, occurrence.payload, self.mesh, validate)
        origin = Origin(gateway_url=self.services.settings.gateway_url or "", span=self.new_span())
        compose = first_message(submission, origin, self.mesh)
        key = IdempotencyKey(occurrence.owner, occurrence.key, "")
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

    def _give_up(self, record: Record, problem: str) -> None:
        """Keep the message as a dead letter that says what is wrong.

        Raises:
            ClientError, BotoCoreError: the message stays on the queue.
        """
        self.failed.keep(record.arrival.body, problem)
        self.services.telemetry.count("TriggersFailed")
        self.services.telemetry.log.error("trigger failed", problem=problem, message_id=record.message_id)
