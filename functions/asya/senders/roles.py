"""The roles of a deployment, as CloudFormation names them in a request, and the changes of the list (`protocol §4.roles`)."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

import msgspec

KEEP_FORMER = timedelta(days=18)
"""How long the role of a removed function stays listed: a message may wait 4 days in a queue and 14 in its dead-letter queue."""


class _Properties(msgspec.Struct, frozen=True, rename="pascal"):
    roles: dict[str, str] = {}
    complete: str = "false"  # CloudFormation passes every property as text


class ListRequest(msgspec.Struct, frozen=True, rename={"response_url": "ResponseURL"}):
    """The request of a custom resource, as far as the list needs it.

    Attributes:
        properties, old_properties: the roles of the stack now and before: function to role id.
    """

    response_url: str
    type: Literal["Create", "Update", "Delete"] = msgspec.field(name="RequestType")
    stack_id: str = msgspec.field(name="StackId")
    request_id: str = msgspec.field(name="RequestId")
    logical_id: str = msgspec.field(name="LogicalResourceId")
    properties: _Properties = msgspec.field(name="ResourceProperties")
    old_properties: _Properties = msgspec.field(name="OldResourceProperties", default_factory=_Properties)


class ListChange(msgspec.Struct, frozen=True):
    """What a request changes: the functions of roles by role id, and the roles that expire.

    Attributes:
        completes: whether the stack is the last one, after which the list is complete.
    """

    listed: Mapping[str, str]
    expiring: frozenset[str]
    completes: bool = False


def read_request(event: Mapping[str, Any]) -> ListRequest:
    """Read the request of CloudFormation.

    Raises:
        ValueError: the event is not of a custom resource.
    """
    try:
        return msgspec.convert(event, ListRequest)
    except msgspec.ValidationError as error:
        raise ValueError(f"the event is no request of CloudFormation for a custom resource: {error}") from None


def list_change(request: ListRequest) -> ListChange:
    """The change that a request asks for. A role that is listed again, after a rollback, does not expire."""
    present = {} if request.type == "Delete" else request.properties.roles
    before = request.properties.roles if request.type == "Delete" else request.old_properties.roles
    listed = {role_id: function for function, role_id in present.items()}
    completes = request.type != "Delete" and request.properties.complete == "true"
    return ListChange(listed, frozenset(before.values()) - listed.keys(), completes)


def role_id_of(sender_id: str) -> str:
    """The id of the role in a `SenderId`, which has the session name behind a colon; the id of a user as it is."""
    return sender_id.partition(":")[0]
