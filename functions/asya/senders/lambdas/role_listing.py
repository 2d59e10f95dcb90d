"""The Lambda entry point of x-roles, which lists the roles of a stack and writes the secrets of keys.

CloudFormation calls it, and waits for its time limit without an answer.
"""

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
import urllib3
from botocore.exceptions import BotoCoreError, ClientError

from asya.function.aws import clients
from asya.function.aws.settings import load_settings
from asya.function.aws.telemetry import Telemetry
from asya.function.lambdas.function import Function
from asya.protocol.task_key import SECRET_BYTES
from asya.senders.aws.key_items import KeyItems
from asya.senders.aws.role_list import RoleItems
from asya.senders.roles import ListChange, ListRequest, list_change, read_request

_RETRIES = urllib3.Retry(total=3, backoff_factor=0.5, status_forcelist=(500, 502, 503, 504), raise_on_status=False)
"""Lambda does not call the function again (`protocol §4.roles.order`)."""
_TIMEOUT = 4.0  # seconds for a try
_REASON_LIMIT = 1024  # characters; the whole answer may have 4,096 bytes


def send_answer(request: ListRequest, physical_id: str, problem: str | None) -> None:
    """Tell CloudFormation how a request ended.

    Args:
        request: the request.
        physical_id: the same for each request, so that no update looks like a replacement.
        problem: why the request failed; None after a success.

    Raises:
        urllib3.exceptions.HTTPError: CloudFormation did not take the answer; the deployment fails after its time limit.
    """
    answer = {
        "Status": "SUCCESS" if problem is None else "FAILED",
        "Reason": (problem or "")[:_REASON_LIMIT],
        "PhysicalResourceId": physical_id,
        "StackId": request.stack_id,
        "RequestId": request.request_id,
        "LogicalResourceId": request.logical_id,
    }
    # The URL is signed for an empty media type.
    response = urllib3.request(
        "PUT",
        request.response_url,
        body=msgspec.json.encode(answer),
        headers={"content-type": ""},
        timeout=_TIMEOUT,
        retries=_RETRIES,
    )
    if response.status >= 300:
        raise urllib3.exceptions.HTTPError(f"CloudFormation answered {response.status} to {request.logical_id}")


_TRIES = 8
_PAUSE_SECONDS = 5.0


class RoleListing(msgspec.Struct, frozen=True):
    """The function behind the custom resource of each stack with roles.

    Attributes:
        keys: the secrets of the mesh, which are written before the functions exist that read them.
        answer: tells CloudFormation how a request ended.
        new_secret: returns so many random bytes.
    """

    items: RoleItems
    keys: KeyItems
    telemetry: Telemetry
    answer: Callable[[ListRequest, str, str | None], None]
    now: Callable[[], datetime]
    sleep: Callable[[float], None]
    new_secret: Callable[[int], bytes] = os.urandom

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
                self.keys.write(lambda: self.new_secret(SECRET_BYTES), change.listed.values())
                self.items.write(change, self.now())
            except ClientError as error:
                if is_last or error.response["Error"]["Code"] != "AccessDeniedException":
                    raise
                self.sleep(_PAUSE_SECONDS)
            else:
                return


def build_role_listing(
    own: Function, answer: Callable[[ListRequest, str, str | None], None] = send_answer
) -> RoleListing:
    """Build the function that lists the roles of a stack."""
    dynamodb, table = clients.dynamodb(), own.settings.table_name("sink")
    keys = KeyItems(dynamodb, table)
    return RoleListing(RoleItems(dynamodb, table), keys, own.telemetry, answer, own.now, own.environment.sleep)


@cache
def _role_listing() -> RoleListing:
    return build_role_listing(Function(load_settings(os.environ)))


def role_listing(event: Mapping[str, Any], _context: object) -> None:
    """Handle a request of CloudFormation for the custom resource of a stack."""
    _role_listing().process(event)
