"""Cancels a call by the id of its request (`protocol §13`, `POST /mcp`, `notifications/cancelled`)."""

from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from asya.function.lambdas.environment import Environment
from asya.gateway.access import Caller
from asya.gateway.aws.wait_slots import WaitSlots
from asya.gateway.routes.cancel import CancelRoutes
from asya.protocol.api_errors import ApiError
from asya.tasks.starts.aws.task_starter import TaskStarter

WAIT_SECONDS = 5.0
"""Seconds to wait for a request that is on its way to another instance."""
_POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class McpCancellation:
    """Finds the task of a request and cancels it."""

    starter: TaskStarter
    cancels: CancelRoutes
    slots: WaitSlots
    environment: Environment

    def cancel(self, key: str, caller: Caller, now: datetime) -> None:
        """Cancel the task that an idempotency key started; a key without a task has no effect.

        Only the wait for a request on its way takes slots: a caller without a free one may still cancel a call.

        Raises:
            ApiError: 503 if the request to stop its job runs could not be sent; 429 if no call may wait.
            TaskStoreError: If the table cannot be read or written.
        """
        if self._try_cancel(key, caller, now):
            return
        with self.slots.hold(caller.principal, now):
            deadline = self.environment.monotonic() + WAIT_SECONDS
            while self.environment.monotonic() < deadline:
                self.environment.sleep(_POLL_SECONDS)
                if self._try_cancel(key, caller, now):
                    return

    def _try_cancel(self, key: str, caller: Caller, now: datetime) -> bool:
        task_id = self.starter.task_of(caller.principal, key)
        if task_id is None:
            return False
        try:
            self.cancels.cancel(task_id, caller, now)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True
