"""Lists the roles of a stack before its functions exist (`protocol §4.roles`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.messaging.aws.telemetry import Telemetry
from asya.senders.aws.role_list import RoleItems
from asya.senders.roles import ListRequest, list_change, read_request


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

    def process(self, event: Mapping[str, Any]) -> None:
        """Change the list as a request of CloudFormation asks, and answer it. A failure fails the deployment at once.

        Raises:
            ValueError: the event is not of a custom resource.
            Exception: CloudFormation did not take the answer. Lambda calls again, and the change is repeated.
        """
        request = read_request(event)
        problem = None
        try:
            self.items.write(list_change(request), self.now())
        except (ClientError, BotoCoreError) as error:
            problem = f"the roles of the stack could not be listed: {error}"
            self.telemetry.log.exception("roles not listed", stack=request.stack_id)
        self.answer(request, request.logical_id, problem)
        self.telemetry.log.info("roles listed", stack=request.stack_id, type=request.type, problem=problem)
