"""Canceling a call by the id of its request (`protocol §13`, `POST /mcp`, `notifications/cancelled`)."""

from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from asya.gateway.access import Caller
from asya.gateway.aws.task_starter import TaskStarter
from asya.gateway.routes.cancel import CancelRoutes
from asya.messaging.lambdas.environment import Environment
from asya.protocol.api_errors import ApiError

# The request may be on its way yet, to another instance that has just started: it is waited for.
SECONDS = 5.0
_PAUSE = 0.25


@dataclass(frozen=True, slots=True)
class McpCancellation:
    """Finds the task of a request, and cancels it."""

    starter: TaskStarter
    cancels: CancelRoutes
    environment: Environment

    def cancel(self, key: str, caller: Caller, now: datetime) -> None:
        """Cancel what this key has started; a request that nobody has made, or that started nothing, is of no consequence.

        Raises:
            ApiError: 503 if its job runs could not be asked to stop.
            TaskStoreError: if the table cannot be read or written.
        """
        ends = self.environment.monotonic() + SECONDS
        while not self._is_canceled(key, caller, now) and self.environment.monotonic() < ends:
            self.environment.sleep(_PAUSE)

    def _is_canceled(self, key: str, caller: Caller, now: datetime) -> bool:
        task_id = self.starter.task_of(caller.principal, key)
        if task_id is None:
            return False
        try:
            self.cancels.cancel(task_id, caller, now)
        except ApiError as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True
