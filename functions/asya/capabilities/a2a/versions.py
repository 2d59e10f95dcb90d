"""The version of Agent2Agent that the gateway speaks: 1.0 (`protocol §13`, `/a2a`)."""

from typing import Literal

from msgspec import Raw

from asya.capabilities.a2a.types import A2ATask, ArtifactUpdate, MessagePart, StatusUpdate, WrappedResult
from asya.protocol import states

Method = Literal[
    "send",
    "stream",
    "get",
    "list",
    "cancel",
    "subscribe",
    "set_push",
    "get_push",
    "list_push",
    "delete_push",
    "extended_card",
]

VERSION = "1.0"
USER, AGENT = "ROLE_USER", "ROLE_AGENT"
STATES = {
    states.PENDING: "TASK_STATE_SUBMITTED",
    states.RUNNING: "TASK_STATE_WORKING",
    states.PAUSED: "TASK_STATE_INPUT_REQUIRED",
    states.SUCCEEDED: "TASK_STATE_COMPLETED",
    states.FAILED: "TASK_STATE_FAILED",
    states.CANCELED: "TASK_STATE_CANCELED",
    states.UNKNOWN: "TASK_STATE_UNSPECIFIED",
}
"""The state for each status of a task, `unknown` included."""
METHODS: dict[str, Method] = {
    "SendMessage": "send",
    "SendStreamingMessage": "stream",
    "GetTask": "get",
    "ListTasks": "list",
    "CancelTask": "cancel",
    "SubscribeToTask": "subscribe",
    "CreateTaskPushNotificationConfig": "set_push",
    "GetTaskPushNotificationConfig": "get_push",
    "ListTaskPushNotificationConfigs": "list_push",
    "DeleteTaskPushNotificationConfig": "delete_push",
    "GetExtendedAgentCard": "extended_card",
}
"""The method of the latest version that each name means."""
_JSON = "application/json"


def is_supported(version: str) -> bool:
    """Return whether a client may name this version; its patch number is ignored."""
    return version == VERSION or version.startswith(f"{VERSION}.")


def status_of_state(state: str) -> str | None:
    """Return the status of the mesh for a state; None if there is no such status."""
    return next((status for status, name in STATES.items() if name == state), None)


def text_part(text: str) -> MessagePart:
    """Return a text part."""
    return MessagePart(text=text)


def data_part(value: Raw) -> MessagePart:
    """Return a data part."""
    return MessagePart(data=value)


def link_part(uri: str) -> MessagePart:
    """Return a part that links to a JSON document."""
    return MessagePart(url=uri, media_type=_JSON)


def wrapped(item: A2ATask | StatusUpdate | ArtifactUpdate) -> WrappedResult:
    """Return the response to a message, the body of a push notification, or an item of a stream."""
    match item:
        case A2ATask():
            return WrappedResult(task=item)
        case StatusUpdate():
            return WrappedResult(status_update=item)
        case ArtifactUpdate():
            return WrappedResult(artifact_update=item)
