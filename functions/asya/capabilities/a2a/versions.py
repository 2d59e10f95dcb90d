"""The two supported versions of Agent2Agent: 1.0 and 0.3 (`protocol §13`, `/a2a`).

The name of the method selects the version: `message/send` is 0.3, `SendMessage` is 1.0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec import UNSET, Raw

from asya.capabilities.a2a.types import (
    A2ATask,
    ArtifactUpdate,
    Authentication,
    FileContent,
    MessagePart,
    PushConfig,
    PushConfigList,
    StatusUpdate,
    TaskPushConfig,
    WrappedResult,
)

Operation = Literal[
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

_STATES = {
    "pending": "submitted",
    "running": "working",
    "paused": "input-required",
    "succeeded": "completed",
    "failed": "failed",
    "canceled": "canceled",
}
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class A2AVersion:
    """The format of one version.

    Attributes:
        states: The state for each status of a task, `unknown` included.
        user: The role of a client.
        agent: The role of the mesh.
        methods: The operation of each method.
        has_kinds: Whether each object names its type in `kind`.
    """

    name: str
    states: Mapping[str, str]
    user: str
    agent: str
    methods: Mapping[str, Operation]
    has_kinds: bool

    def status(self, state: str) -> str | None:
        """Return the status of the mesh for a state; None if there is no such status."""
        return next((status for status, name in self.states.items() if name == state), None)

    def kind(self, name: str) -> str | None:
        """Return the value of `kind`; None if the version has no kinds."""
        return name if self.has_kinds else None

    def text(self, text: str) -> MessagePart:
        """Return a text part."""
        return MessagePart(kind=self.kind("text"), text=text)

    def data(self, value: Raw) -> MessagePart:
        """Return a data part; version 0.3 takes only objects, so its convention wraps other values."""
        if not self.has_kinds or bytes(value).lstrip()[:1] == b"{":
            return MessagePart(kind=self.kind("data"), data=value)
        wrapped = Raw(b'{"value":' + bytes(value) + b"}")
        return MessagePart(kind="data", data=wrapped, metadata={"data_part_compat": True})

    def link(self, uri: str) -> MessagePart:
        """Return a part that links to a JSON document."""
        if self.has_kinds:
            return MessagePart(kind="file", file=FileContent(uri=uri, mime_type=_JSON))
        return MessagePart(url=uri, media_type=_JSON)

    def wrap_task(self, task: A2ATask) -> object:
        """Return the response to a message, which is also the body of a push notification."""
        return task if self.has_kinds else WrappedResult(task=task)

    def wrap_item(self, item: A2ATask | StatusUpdate | ArtifactUpdate) -> object:
        """Return an item of a stream."""
        if self.has_kinds:
            return item
        match item:
            case A2ATask():
                return WrappedResult(task=item)
            case StatusUpdate():
                return WrappedResult(status_update=msgspec.structs.replace(item, final=UNSET))
            case ArtifactUpdate():
                return WrappedResult(artifact_update=item)

    def push_config(self, config: PushConfig) -> object:
        """Return a push configuration without its credentials."""
        redacted = self._redact(config)
        if not self.has_kinds:
            return redacted
        inner = msgspec.structs.replace(redacted, task_id=None)
        return TaskPushConfig(task_id=config.task_id or "", push_notification_config=inner)

    def push_configs(self, configs: tuple[PushConfig, ...]) -> object:
        """Return the push configurations of a task without their credentials."""
        if self.has_kinds:
            return [self.push_config(config) for config in configs]
        return PushConfigList(configs=tuple(map(self._redact, configs)))

    def _redact(self, config: PushConfig) -> PushConfig:
        return msgspec.structs.replace(config, authentication=self._redact_authentication(config.authentication))

    def _redact_authentication(self, authentication: Authentication | None) -> Authentication | None:
        if authentication is None:
            return None
        scheme = authentication.scheme or next(iter(authentication.schemes), None)
        if self.has_kinds:
            return Authentication(schemes=(scheme,) if scheme else ())
        return Authentication(scheme=scheme)


V03 = A2AVersion(
    name="0.3",
    states=_STATES | {"unknown": "unknown"},
    user="user",
    agent="agent",
    methods={
        "message/send": "send",
        "message/stream": "stream",
        "tasks/get": "get",
        "tasks/list": "list",
        "tasks/cancel": "cancel",
        "tasks/resubscribe": "subscribe",
        "tasks/pushNotificationConfig/set": "set_push",
        "tasks/pushNotificationConfig/get": "get_push",
        "tasks/pushNotificationConfig/list": "list_push",
        "tasks/pushNotificationConfig/delete": "delete_push",
        "agent/getAuthenticatedExtendedCard": "extended_card",
    },
    has_kinds=True,
)
V10 = A2AVersion(
    name="1.0",
    states={status: "TASK_STATE_" + state.upper().replace("-", "_") for status, state in _STATES.items()}
    | {"unknown": "TASK_STATE_UNSPECIFIED"},
    user="ROLE_USER",
    agent="ROLE_AGENT",
    methods={
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
    },
    has_kinds=False,
)
VERSIONS = (V10, V03)


def find_version(name: str) -> A2AVersion | None:
    """Return the version of a name, whose patch number is ignored; None if it is not supported."""
    return next((version for version in VERSIONS if name == version.name or name.startswith(version.name + ".")), None)


def version_of_method(method: str) -> A2AVersion | None:
    """Return the version that has a method; None if neither has."""
    return next((version for version in VERSIONS if method in version.methods), None)
