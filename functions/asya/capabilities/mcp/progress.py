"""Progress notifications of a tool call (`protocol §13`, `POST /mcp`)."""

from dataclasses import dataclass, field

import msgspec
from msgspec import UNSET, UnsetType

from asya.capabilities.mcp.types import ProgressToken
from asya.gateway.json_rpc import RpcNotification
from asya.tasks.view import TaskView


class ProgressParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The parameters of `notifications/progress`; progress is in percent."""

    progress_token: ProgressToken
    progress: int
    total: int = 100
    message: str | UnsetType = UNSET


@dataclass(slots=True)
class ProgressNotifications:
    """Collects the notifications of one call, with strictly increasing progress."""

    token: ProgressToken
    items: list[RpcNotification] = field(default_factory=list)
    _percent: int = 0

    def add(self, task: TaskView) -> None:
        """Add a notification if the task has progressed."""
        if task.progress_percent <= self._percent:
            return
        self._percent = task.progress_percent
        message = f"{task.status} at {task.actor}" if task.actor else task.status
        params = ProgressParams(progress_token=self.token, progress=task.progress_percent, message=message)
        self.items.append(RpcNotification(method="notifications/progress", params=params))
