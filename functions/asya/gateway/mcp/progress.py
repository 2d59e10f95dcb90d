"""How far a call's task is, as notifications to the client that asked for them (`protocol §13`, `POST /mcp`)."""

from dataclasses import dataclass, field

import msgspec
from msgspec import UNSET, UnsetType

from asya.gateway.json_rpc import RpcNotification
from asya.gateway.mcp.types import ProgressToken
from asya.tasks.view import TaskView


class ProgressParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Percent, and at which actor."""

    progress_token: ProgressToken
    progress: int
    total: int = 100
    message: str | UnsetType = UNSET


@dataclass(slots=True)
class ProgressNotices:
    """Collects the notifications of one call; each one's progress is more than that of the one before."""

    token: ProgressToken
    found: list[RpcNotification] = field(default_factory=list)
    _reached: int = 0

    def look(self, task: TaskView) -> None:
        """Take note of how far the task is."""
        if task.progress_percent <= self._reached:
            return
        self._reached = task.progress_percent
        message = f"{task.status} at {task.actor}" if task.actor else task.status
        told = ProgressParams(progress_token=self.token, progress=task.progress_percent, message=message)
        self.found.append(RpcNotification(method="notifications/progress", params=told))
