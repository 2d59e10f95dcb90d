"""Builds the tasks of a mesh over its table."""

from collections.abc import Callable, Sequence

from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.lambdas.environment import Environment
from asya.protocol.task import TaskRecord
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.tasks import Tasks


def build_store(settings: Settings, environment: Environment) -> DynamoTaskStore:
    """Build the store of the mesh's tasks table."""
    retention = settings.table.retention.tasks
    return DynamoTaskStore(
        clients.dynamodb(),
        settings.table_name("tasks"),
        retention,
        environment.sleep,
        threaded=environment.is_threaded,
    )


def build_tasks(
    settings: Settings,
    warn: Callable[[str], None],
    environment: Environment,
    on_ends: Callable[[Sequence[TaskRecord]], None] | None = None,
) -> Tasks:
    """Build the tasks of the mesh.

    Args:
        settings: the settings of the function.
        warn: logs a warning.
        environment: the environment of the process.
        on_ends: is told which tasks have ended.
    """
    return Tasks(build_store(settings, environment), warn, threaded=environment.is_threaded, on_ends=on_ends)
