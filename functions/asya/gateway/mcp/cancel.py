"""Canceling a call by the id of its request (`protocol §13`, `POST /mcp`, `notifications/cancelled`)."""

from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from asya.gateway.access import Caller
from asya.gateway.aws.task_starter import TaskStarter
from asya.gateway.routes.cancel import Cancels
from asya.messaging.lambdas.environment import Surroundings
from asya.protocol.api_errors import RefusedError

# The request may be on its way yet, to another instance that has just started: it is waited for.
SECONDS = 5.0
_PAUSE = 0.25


@dataclass(frozen=True, slots=True)
class McpCancels:
    """Finds the task of a request, and cancels it."""

    starter: TaskStarter
    cancels: Cancels
    surroundings: Surroundings

    def cancel(self, key: str, caller: Caller, now: datetime) -> None:
        """Cancel what this key has started; a request that nobody has made, or that started nothing, is of no consequence.

        Raises:
            RefusedError: 503 if its job runs could not be asked to stop.
            TaskStoreError: if the table cannot be read or written.
        """
        ends = self.surroundings.monotonic() + SECONDS
        while not self._is_canceled(key, caller, now) and self.surroundings.monotonic() < ends:
            self.surroundings.pause(_PAUSE)

    def _is_canceled(self, key: str, caller: Caller, now: datetime) -> bool:
        task_id = self.starter.task_of(caller.principal, key)
        if task_id is None:
            return False
        try:
            self.cancels.cancel(task_id, caller, now)
        except RefusedError as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True
