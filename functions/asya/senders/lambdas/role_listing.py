"""Lists the roles of a stack before its functions exist (`protocol §4.roles`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.function.aws.telemetry import Telemetry
from asya.senders.aws.role_list import RoleItems
from asya.senders.roles import ListChange, ListRequest, list_change, read_request

_TRIES = 8
_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RoleListing:
    """The function behind the custom resource of each stack with roles.

    Attributes:
        answer: tells CloudFormation how a request ended.
    """

    items: RoleItems
    telemetry: Telemetry
    answer: Callable[[ListRequest, str, str | None], None]
    now: Callable[[], datetime]
    sleep: Callable[[float], None]

    def process(self, event: Mapping[str, Any]) -> None:
        """Change the list as a request of CloudFormation asks, and answer it. A failure fails the deployment at once.

        Raises:
            ValueError: the event is not of a custom resource.
            Exception: CloudFormation did not take the answer; the deployment fails after its time limit.
        """
        request = read_request(event)
        problem = None
        try:
            self._write(list_change(request))
        except (ClientError, BotoCoreError) as error:
            problem = f"the roles of the stack could not be listed: {error}"
            self.telemetry.log.exception("roles not listed", stack=request.stack_id)
        self.answer(request, request.logical_id, problem)
        self.telemetry.log.info("roles listed", stack=request.stack_id, type=request.type, problem=problem)

    def _write(self, change: ListChange) -> None:
        """Write a change. The permissions of a role that was made just now take effect within seconds."""
        for is_last in (*[False] * _TRIES, True):
            try:
                self.items.write(change, self.now())
            except ClientError as error:
                if is_last or error.response["Error"]["Code"] != "AccessDeniedException":
                    raise
                self.sleep(_PAUSE_SECONDS)
            else:
                return
