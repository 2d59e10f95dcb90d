"""Builds the cancellation of tasks."""

from asya.capabilities.cancels.lambdas.task_cancels import TaskCancels
from asya.capabilities.pauses.lambdas.wiring import build_releases
from asya.ends.aws.end_claims import EndClaims
from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.lambdas.function import Function
from asya.heavy.aws.cancel_requests import CancelRequests
from asya.protocol import names
from asya.tasks.aws.stored_tasks import StoredTasks


def build_task_cancels(own: Function, stored: StoredTasks) -> TaskCancels:
    """Build the cancellation of the mesh's tasks."""
    settings = own.settings
    return TaskCancels(
        tasks=stored.tasks,
        store=stored.store,
        index=stored.index,
        claims=EndClaims(clients.dynamodb(), settings.table_name("sink"), settings.table.retention.tasks),
        pause_releases=build_releases(own, stored.tasks),
        runs=_cancel_requests(settings),
        environment=own.environment,
        warn=own.warn,
    )


def _cancel_requests(settings: Settings) -> CancelRequests | None:
    """Build the sender of cancel requests; None for a mesh without heavy actors."""
    if not any(actor.kind == "spark" for actor in settings.table.actors.values()):
        return None
    return CancelRequests(clients.sqs(), queue_url=settings.queue_url(names.COMPLETION))
