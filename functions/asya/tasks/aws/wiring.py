"""Puts the tasks of a mesh together, over its table."""

from collections.abc import Callable

from asya.messaging.aws import clients
from asya.messaging.aws.settings import Settings
from asya.messaging.lambdas.environment import Environment
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.tasks import Tasks


def build_store(settings: Settings, environment: Environment) -> DynamoTaskStore:
    """The tasks table of this mesh."""
    retention = settings.table.retention.tasks
    return DynamoTaskStore(clients.dynamodb(), settings.table_name("tasks"), retention, environment.sleep)


def build_tasks(settings: Settings, warn: Callable[[str], None], environment: Environment) -> Tasks:
    """The tasks of this mesh."""
    return Tasks(build_store(settings, environment), warn, threaded=environment.is_threaded)
