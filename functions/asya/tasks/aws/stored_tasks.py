"""The tasks of a mesh in its table, as a function uses them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from asya.function.aws import clients
from asya.function.lambdas.function import Function
from asya.protocol.task import TaskRecord
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.index import TaskIndex

if TYPE_CHECKING:
    from asya.tasks.aws.tasks import ReportWriter, Tasks


@dataclass(frozen=True)
class StoredTasks:
    """The table of tasks of a mesh; each part is built when it is first used.

    Attributes:
        own: the function.
        on_ends: is told which tasks have ended.
    """

    own: Function
    on_ends: Callable[[Sequence[TaskRecord]], None] | None = None

    @cached_property
    def store(self) -> DynamoTaskStore:
        """The store of records and hops."""
        settings, environment = self.own.settings, self.own.environment
        return DynamoTaskStore(
            clients.dynamodb(),
            settings.table_name("tasks"),
            settings.table.retention.tasks,
            environment.sleep,
            threaded=environment.is_threaded,
        )

    @cached_property
    def index(self) -> TaskIndex:
        """The indexes of the table."""
        table = self.own.settings.table_name("tasks")
        return TaskIndex(clients.dynamodb(), table, threaded=self.own.environment.is_threaded)

    @cached_property
    def tasks(self) -> "Tasks":
        """The tasks: their reports, changes and views."""
        # Functions that only read records need none of it.
        from asya.tasks.aws.tasks import Tasks

        return Tasks(self.store, self.own.warn, threaded=self.own.environment.is_threaded, on_ends=self.on_ends)

    @cached_property
    def writer(self) -> "ReportWriter":
        """Writes reports with their partials."""
        from asya.tasks.aws.partials import PartialStore
        from asya.tasks.aws.tasks import ReportWriter

        table = self.own.settings.table_name("tasks")
        partials = PartialStore(clients.dynamodb(), table, self.own.environment.sleep)
        return ReportWriter(tasks=self.tasks, partials=partials, warn=self.own.warn)
