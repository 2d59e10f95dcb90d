"""The messages of Agent2Agent (`protocol §13`, `/a2a`). `asya.capabilities.a2a.versions` has the names of states and roles."""

import msgspec
from msgspec import UNSET, Raw, UnsetType

Metadata = dict[str, object]
"""Any JSON object that a client attaches to a request or a message."""


class MessagePart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A part of a message or an artifact: a text, any JSON, or a file."""

    text: str | None = None
    data: Raw | UnsetType = UNSET
    url: str | None = None
    raw: str | None = None
    filename: str | None = None
    media_type: str | None = None
    metadata: Metadata | None = None


class A2AMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A message of a client or an agent.

    Attributes:
        message_id: Unique for each message; its sender chooses it.
        task_id: The task to continue; None starts a task.
    """

    message_id: str
    role: str
    parts: tuple[MessagePart, ...]
    context_id: str | None = None
    task_id: str | None = None
    metadata: Metadata | None = None


class A2AStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The status of a task, its time, and a message about it."""

    state: str
    timestamp: str | None = None
    message: A2AMessage | None = None


class Artifact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The result of a task."""

    artifact_id: str
    parts: tuple[MessagePart, ...]
    name: str | None = None


class A2ATask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A task of the mesh, under its own id."""

    id: str
    context_id: str
    status: A2AStatus
    artifacts: tuple[Artifact, ...] = ()
    metadata: Metadata | None = None


class StatusUpdate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A change of status within a stream."""

    task_id: str
    context_id: str
    status: A2AStatus
    metadata: Metadata | None = None


class ArtifactUpdate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """An artifact within a stream."""

    task_id: str
    context_id: str
    artifact: Artifact
    last_chunk: bool = False


class WrappedResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A response or a stream item; the name of the member identifies its type."""

    task: A2ATask | None = None
    status_update: StatusUpdate | None = None
    artifact_update: ArtifactUpdate | None = None


class TaskPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A page of tasks. `total_size` is -1 if more than one page exists."""

    tasks: tuple[A2ATask, ...]
    next_page_token: str
    page_size: int
    total_size: int


class Authentication(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The authentication of a push notification: `Authorization: {scheme} {credentials}`."""

    scheme: str | None = None
    credentials: str | None = None


class PushConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The configuration of push notifications of a task."""

    url: str
    id: str | None = None
    task_id: str | None = None
    token: str | None = None
    authentication: Authentication | None = None


class PushConfigList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The push configurations of a task."""

    configs: tuple[PushConfig, ...]
