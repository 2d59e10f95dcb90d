"""Agent2Agent's words as they travel, in both of its versions (`protocol §13`, `/a2a`).

One set of types reads and writes both: what only one version has is left out in the other. Which words a version uses for states,
roles and kinds is `asya.gateway.a2a.versions`'.
"""

import msgspec
from msgspec import UNSET, Raw, UnsetType

# What a client keeps of its own with a task or a message: any JSON object.
Metadata = dict[str, object]


class FileContent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A file in version 0.3: its address, or its bytes in base64."""

    uri: str | None = None
    bytes: str | None = None
    name: str | None = None
    mime_type: str | None = None


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A piece of a message or an artifact: a text, any JSON, or a file.

    Attributes:
        kind: `text`, `data` or `file` in version 0.3.
        file: a file in version 0.3; `url` and `raw` are the same in version 1.0.
    """

    kind: str | None = None
    text: str | None = None
    data: Raw | UnsetType = UNSET
    file: FileContent | None = None
    url: str | None = None
    raw: str | None = None
    filename: str | None = None
    media_type: str | None = None
    metadata: Metadata | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What one side says to the other.

    Attributes:
        message_id: made up by who says it, another for each message.
        task_id: the task it continues; none for one that is to start a task.
    """

    message_id: str
    role: str
    parts: tuple[Part, ...]
    kind: str | None = None
    context_id: str | None = None
    task_id: str | None = None
    metadata: Metadata | None = None


class A2AStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """How a task stands, since when, and what there is to say about it."""

    state: str
    timestamp: str | None = None
    message: Message | None = None


class Artifact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a task came to."""

    artifact_id: str
    parts: tuple[Part, ...]
    name: str | None = None


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A task of the mesh, under its own id."""

    id: str
    context_id: str
    status: A2AStatus
    kind: str | None = None
    artifacts: tuple[Artifact, ...] = ()
    metadata: Metadata | None = None


class StatusUpdate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """How a task stands from now on. `final`, in version 0.3: nothing follows in this stream."""

    task_id: str
    context_id: str
    status: A2AStatus
    kind: str | None = None
    final: bool | UnsetType = UNSET
    metadata: Metadata | None = None


class ArtifactUpdate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a task came to, within a stream."""

    task_id: str
    context_id: str
    artifact: Artifact
    kind: str | None = None
    last_chunk: bool = False


class Wrapped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """An answer or an item of a stream in version 1.0, where the member's name says which of them it is."""

    task: Task | None = None
    status_update: StatusUpdate | None = None
    artifact_update: ArtifactUpdate | None = None


class TaskPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A page of tasks. `total_size` is -1 where nobody has counted them: that would mean reading them all."""

    tasks: tuple[Task, ...]
    next_page_token: str
    page_size: int
    total_size: int


class Authentication(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """How a push notification identifies itself: `Authorization: {scheme} {credentials}`. Version 0.3 has a list of schemes."""

    scheme: str | None = None
    schemes: tuple[str, ...] = ()
    credentials: str | None = None


class PushConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Where push notifications of a task go. `task_id` stands beside it in version 0.3."""

    url: str
    id: str | None = None
    task_id: str | None = None
    token: str | None = None
    authentication: Authentication | None = None


class TaskPushConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The same with its task, in version 0.3."""

    task_id: str
    push_notification_config: PushConfig


class PushConfigList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All of a task, in version 1.0."""

    configs: tuple[PushConfig, ...]
