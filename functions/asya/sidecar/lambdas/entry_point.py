"""The entry points of the mesh's functions: what Lambda calls, and what every other mode builds the same function from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from asya.function.aws.receipt import Receipt
from asya.function.lambdas.batch import BatchResponse, Record, records
from asya.protocol import names
from asya.sidecar.lambdas.metrics_and_spans import record_arrivals
from asya.sidecar.lambdas.services import Services, services
from asya.sidecar.secret_errors import SecretError


class LambdaContext(Protocol):
    """Lambda's context of an invocation."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda ends the invocation."""


class BatchActor(Protocol):
    """Processes the batches of one SQS queue."""

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch and name the messages that stay on the queue."""


class Sweep(Protocol):
    """Runs on a schedule."""

    def sweep(self) -> None:
        """Run once."""


Invocation = Callable[[Mapping[str, Any], LambdaContext], BatchResponse]


class QueueEntryPoint:
    """The function of a queue. Lambda calls it; it starts at the first event and stays.

    Attributes:
        start: builds the function of a process, which the result calls for each batch.
    """

    def __init__(self, start: Callable[[Services], Invocation]) -> None:
        self.start = start
        self._started: Invocation | None = None

    def __call__(self, event: Mapping[str, Any], context: LambdaContext) -> BatchResponse:
        """Process one batch and name the messages that stay on the queue."""
        if self._started is None:
            try:
                self._started = self.start(services())
            except SecretError as error:
                return _keep_all(services(), event, error)
        return self._started(event, context)


class SharedEntryPoint(QueueEntryPoint):
    """The function of several actors: the one whose queue a batch comes from processes it, as a function of its own would.

    Args:
        entry_points: by actor. Each has its own services, so lines, metrics and reports have the name of the actor.
    """

    def __init__(self, entry_points: Mapping[str, QueueEntryPoint]) -> None:
        super().__init__(lambda own: entry_points[own.settings.actor].start(own))
        self._of_actor: dict[str, Invocation] = {}

    def __call__(self, event: Mapping[str, Any], context: LambdaContext) -> BatchResponse:
        """Process one batch and name the messages that stay on the queue."""
        own = services()
        queue = event["Records"][0]["eventSourceARN"].rpartition(":")[2]
        actor = queue.removeprefix(names.queue_name(own.settings.namespace, ""))
        if actor not in self._of_actor:
            self._of_actor[actor] = self.start(Services(replace(own.settings, actor=actor)))
        return self._of_actor[actor](event, context)


def queue_entry_point(build: Callable[[Services], BatchActor]) -> QueueEntryPoint:
    """Return the function of a queue."""

    def start(own: Services) -> Invocation:
        actor = build(own)
        return lambda event, _context: actor.process(event)

    return QueueEntryPoint(start)


def timed_queue_entry_point(build: Callable[[Services], Callable[[LambdaContext], BatchActor]]) -> QueueEntryPoint:
    """Return the function of a queue that asks how much time an invocation has left."""

    def start(own: Services) -> Invocation:
        actor_of = build(own)
        return lambda event, context: actor_of(context).process(event)

    return QueueEntryPoint(start)


def _keep_all(own: Services, event: Mapping[str, Any], error: SecretError) -> BatchResponse:
    """Keep all messages on the queue: an error of the function would use up their receives within minutes."""

    def refuse(_record: Record) -> list[Receipt]:
        raise error

    items = records(event)
    record_arrivals(own, items)
    try:
        return own.worker.process(items, refuse)
    finally:
        own.telemetry.flush()


class ScheduleEntryPoint:
    """The function of a schedule: sweeps one after another. One that fails holds up none of the others."""

    def __init__(self, builds: Sequence[Callable[[Services], Sweep]]) -> None:
        self._builds = builds

    def sweep(self, own: Services) -> None:
        """Run all sweeps once.

        Raises:
            Exception: the error of a sweep; an `ExceptionGroup` if several failed.
        """
        errors: list[Exception] = []
        for build in self._builds:
            try:
                build(own).sweep()
            except Exception as error:  # noqa: BLE001 - it is raised below
                errors.append(error)
        if errors:
            raise errors[0] if len(errors) == 1 else ExceptionGroup("sweeps failed", errors)

    def __call__(self, _event: Mapping[str, Any], _context: object) -> None:
        """Run all sweeps once."""
        self.sweep(services())


def schedule_entry_point(*builds: Callable[[Services], Sweep]) -> ScheduleEntryPoint:
    """Return the function of a schedule."""
    return ScheduleEntryPoint(builds)


class Changes(Protocol):
    """Processes the changes of a table."""

    def process(self, event: Mapping[str, Any]) -> None:
        """Process one batch, which comes again if this raises."""


class ChangesEntryPoint:
    """The function of a table's changes. Lambda calls it; it starts at the first event and stays.

    Attributes:
        start: builds the function of a process.
    """

    def __init__(self, start: Callable[[Services], Changes]) -> None:
        self.start = start
        self._started: Changes | None = None

    def __call__(self, event: Mapping[str, Any], _context: object) -> None:
        """Process one batch."""
        if self._started is None:
            self._started = self.start(services())
        self._started.process(event)
