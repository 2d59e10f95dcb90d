"""Builds the cancellation of tasks."""

from collections.abc import Callable

from asya.capabilities.cancels.lambdas.task_cancels import TaskCancels
from asya.capabilities.pauses.lambdas.wiring import build_releases
from asya.ends.aws.end_claims import EndClaims
from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.lambdas.environment import Environment
from asya.heavy.aws.cancel_requests import CancelRequests
from asya.protocol import names
from asya.tasks.aws.index import TaskIndex
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.aws.tasks import Tasks


def build_task_cancels(
    settings: Settings, tasks: Tasks, store: TaskStore, environment: Environment, warn: Callable[[str], None]
) -> TaskCancels:
    """Build the cancellation of the mesh's tasks."""
    return TaskCancels(
        tasks=tasks,
        store=store,
        index=TaskIndex(clients.dynamodb(), settings.table_name("tasks"), threaded=environment.is_threaded),
        claims=EndClaims(clients.dynamodb(), settings.table_name("sink"), settings.table.retention.tasks),
        pause_releases=build_releases(settings, tasks, warn),
        runs=_cancel_requests(settings),
        environment=environment,
        warn=warn,
    )


def _cancel_requests(settings: Settings) -> CancelRequests | None:
    """Build the sender of cancel requests; None for a mesh without heavy actors."""
    if not any(actor.kind == "spark" for actor in settings.table.actors.values()):
        return None
    return CancelRequests(clients.sqs(), queue_url=settings.queue_url(names.COMPLETION))
