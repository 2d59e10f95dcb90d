"""The two versions of Agent2Agent that are spoken: 1.0, and 0.3 before it (`protocol §13`, `/a2a`).

A method's name says which one a request is in: 0.3 has `message/send`, 1.0 has `SendMessage`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw

from asya.gateway.a2a.types import (
    ArtifactUpdate,
    Authentication,
    FileContent,
    Part,
    PushConfig,
    PushConfigList,
    StatusUpdate,
    Task,
    TaskPushConfig,
    Wrapped,
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

T = TypeVar("T", Task, StatusUpdate, ArtifactUpdate)


@dataclass(frozen=True, slots=True)
class A2AVersion:
    """One version's words.

    Attributes:
        states: its word for each status of the mesh, and for that of a record that cannot be read.
        methods: what each of its methods asks for.
        tags_kinds: whether every object says what it is in `kind`.
    """

    name: str
    states: Mapping[str, str]
    user: str
    agent: str
    methods: Mapping[str, Operation]
    tags_kinds: bool

    def status(self, state: str) -> str | None:
        """The mesh's status behind a state; None if it has none that is like it."""
        return next((status for status, word in self.states.items() if word == state), None)

    def kind(self, word: str) -> str | None:
        """What an object says of itself."""
        return word if self.tags_kinds else None

    def text(self, text: str) -> Part:
        """A text."""
        return Part(kind=self.kind("text"), text=text)

    def data(self, value: Raw) -> Part:
        """Any JSON; 0.3 takes objects only, so that others are put into one, as its own tools do it."""
        if not self.tags_kinds or bytes(value).lstrip()[:1] == b"{":
            return Part(kind=self.kind("data"), data=value)
        wrapped = Raw(b'{"value":' + bytes(value) + b"}")
        return Part(kind="data", data=wrapped, metadata={"data_part_compat": True})

    def link(self, uri: str) -> Part:
        """The address of a JSON document."""
        if self.tags_kinds:
            return Part(kind="file", file=FileContent(uri=uri, mime_type=_JSON))
        return Part(url=uri, media_type=_JSON)

    def sent(self, task: Task) -> object:
        """The answer to a message, and the body of a push notification."""
        return task if self.tags_kinds else Wrapped(task=task)

    def streamed(self, item: Task | StatusUpdate | ArtifactUpdate) -> object:
        """An item of a stream."""
        if self.tags_kinds:
            return item
        match item:
            case Task():
                return Wrapped(task=item)
            case StatusUpdate():
                return Wrapped(status_update=msgspec.structs.replace(item, final=UNSET))
            case ArtifactUpdate():
                return Wrapped(artifact_update=item)

    def push_config(self, config: PushConfig) -> object:
        """A push notification's configuration as it is shown: without its credentials."""
        shown = self._shown(config)
        if not self.tags_kinds:
            return shown
        inner = msgspec.structs.replace(shown, task_id=None)
        return TaskPushConfig(task_id=config.task_id or "", push_notification_config=inner)

    def push_configs(self, configs: tuple[PushConfig, ...]) -> object:
        """All of a task."""
        if self.tags_kinds:
            return [self.push_config(config) for config in configs]
        return PushConfigList(configs=tuple(map(self._shown, configs)))

    def _shown(self, config: PushConfig) -> PushConfig:
        return msgspec.structs.replace(config, authentication=self._authentication(config.authentication))

    def _authentication(self, given: Authentication | None) -> Authentication | None:
        if given is None:
            return None
        scheme = given.scheme or next(iter(given.schemes), None)
        if self.tags_kinds:
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
    tags_kinds=True,
)
V10 = A2AVersion(
    name="1.0",
    states={status: "TASK_STATE_" + word.upper().replace("-", "_") for status, word in _STATES.items()}
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
    tags_kinds=False,
)
VERSIONS = (V10, V03)


def version_named(name: str) -> A2AVersion | None:
    """The version of this name, whatever its patch number; None if it is not spoken."""
    return next((version for version in VERSIONS if name == version.name or name.startswith(version.name + ".")), None)


def version_of(method: str) -> A2AVersion | None:
    """The version that has this method; None if neither has."""
    return next((version for version in VERSIONS if method in version.methods), None)
