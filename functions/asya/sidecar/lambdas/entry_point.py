"""Turns an actor of the mesh into the handler that Lambda calls."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol

from asya.messaging.aws.receipt import Receipt
from asya.messaging.lambdas.batch import BatchResponse, Record, records
from asya.sidecar.lambdas.metrics import record_arrivals
from asya.sidecar.lambdas.services import Services, services
from asya.sidecar.secret_errors import SecretError


class BatchActor(Protocol):
    """Processes the batches of one SQS queue."""

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch and name the messages that stay on the queue."""


class Sweep(Protocol):
    """Runs on a schedule."""

    def sweep(self) -> None:
        """Run once."""


def queue_entry_point(build: Callable[[Services], BatchActor]) -> Callable[[Mapping[str, Any], object], BatchResponse]:
    """The Lambda handler of a queue's function; builds the actor at the first event and reuses it."""
    actor = cache(lambda: build(services()))

    def handle(event: Mapping[str, Any], _context: object) -> BatchResponse:
        try:
            built = actor()
        except SecretError as error:
            return _keep_all(services(), event, error)
        return built.process(event)

    return handle


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


def schedule_entry_point(*builds: Callable[[Services], Sweep]) -> Callable[[Mapping[str, Any], object], None]:
    """The Lambda handler of a scheduled function. A sweep that fails holds up none of the others."""

    def handle(_event: Mapping[str, Any], _context: object) -> None:
        errors: list[Exception] = []
        for build in builds:
            try:
                build(services()).sweep()
            except Exception as error:  # noqa: BLE001 - it is raised below
                errors.append(error)
        if errors:
            raise errors[0] if len(errors) == 1 else ExceptionGroup("sweeps failed", errors)

    return handle
