"""Tasks of the mesh in the format of Agent2Agent (`protocol §13`, `/a2a`). The ids are the mesh's own."""

import msgspec
from msgspec import UNSET, Raw, UnsetType

from asya.capabilities.a2a.types import (
    A2AMessage,
    A2AStatus,
    A2ATask,
    Artifact,
    ArtifactUpdate,
    MessagePart,
    Metadata,
    StatusUpdate,
)
from asya.capabilities.a2a.versions import A2AVersion
from asya.protocol.events import TERMINAL_STATUSES
from asya.protocol.exact_json import encode_json
from asya.protocol.strict_json import decode_value
from asya.tasks.stream_events import StreamPartial
from asya.tasks.view import TaskView

RESULT = "result"


def context_of(task: TaskView) -> str:
    """Return the context id of a task: the client's, or the id of its root, or its own id."""
    return task.context or task.root_id or task.id


def task_of(task: TaskView, version: A2AVersion, *, with_progress: bool = True) -> A2ATask:
    """Return a task in a version's format.

    Args:
        with_progress: Whether the task includes its hops, which its progress derives from.
    """
    return A2ATask(
        id=task.id,
        context_id=context_of(task),
        kind=version.kind("task"),
        status=status_of(task, version),
        artifacts=artifacts_of(task, version),
        metadata=metadata_of(task, with_progress=with_progress),
    )


def has_stopped(task: TaskView) -> bool:
    """Return whether a task has ended or is paused: nothing happens until a caller acts."""
    return task.status == "paused" or task.status in TERMINAL_STATUSES


def status_of(task: TaskView, version: A2AVersion) -> A2AStatus:
    """Return the status of a task, with the question of a pause or the error of a failure."""
    parts = _status_parts(task, version)
    message = A2AMessage(
        kind=version.kind("message"),
        message_id=f"{task.id}/{task.generation}/{task.status}/{task.updated_at}",
        role=version.agent,
        parts=parts,
        task_id=task.id,
        context_id=context_of(task),
    )
    return A2AStatus(
        state=version.states[task.status],
        timestamp=task.updated_at,
        message=message if parts else None,
    )


def artifacts_of(task: TaskView, version: A2AVersion) -> tuple[Artifact, ...]:
    """Return the result of a task as an artifact: the value, the link to it, or both."""
    parts = []
    if isinstance(task.result, Raw):
        parts.append(_result_part(task.result, version))
    if task.result_uri is not None:
        parts.append(version.link(task.result_uri))
    return (Artifact(artifact_id=RESULT, name=RESULT, parts=tuple(parts)),) if parts else ()


def status_update(task: TaskView, version: A2AVersion) -> StatusUpdate:
    """Return a status update of a task."""
    return StatusUpdate(
        kind=version.kind("status-update"),
        task_id=task.id,
        context_id=context_of(task),
        status=status_of(task, version),
        final=has_stopped(task),
        metadata=metadata_of(task),
    )


def updates(task: TaskView, version: A2AVersion) -> tuple[StatusUpdate | ArtifactUpdate, ...]:
    """Return the updates of a task: its artifacts, then its status."""
    artifact_updates = (
        ArtifactUpdate(
            kind=version.kind("artifact-update"),
            task_id=task.id,
            context_id=context_of(task),
            artifact=artifact,
            last_chunk=True,
        )
        for artifact in artifacts_of(task, version)
    )
    return (*artifact_updates, status_update(task, version))


def partial_update(partial: StreamPartial, task: TaskView, version: A2AVersion) -> StatusUpdate:
    """Return a partial as a status update (`protocol §7`, FLY)."""
    message = A2AMessage(
        kind=version.kind("message"),
        message_id=f"{partial.id}/{partial.generation}/{partial.position}/{partial.attempt}/{partial.receive}/{partial.sequence}",
        role=version.agent,
        parts=(version.data(partial.data),),
        task_id=task.id,
        context_id=context_of(task),
    )
    return StatusUpdate(
        kind=version.kind("status-update"),
        task_id=task.id,
        context_id=context_of(task),
        status=A2AStatus(state=version.states["running"], timestamp=partial.at, message=message),
        final=False,
        metadata={"actor": partial.actor},
    )


def _status_parts(task: TaskView, version: A2AVersion) -> tuple[MessagePart, ...]:
    if task.pause is not None:
        question: dict[str, object] = {"fields": task.pause.fields}
        if task.pause.shown is not UNSET:
            question["shown"] = task.pause.shown
        return (version.text(task.pause.prompt), version.data(Raw(encode_json(question))))
    if task.status == "failed":
        message = task.error.message if task.error else "the task failed"
        details = {"reason": task.reason, "error": task.error.type if task.error else None}
        return (version.text(message), version.data(Raw(msgspec.json.encode(details))))
    return ()


def _result_part(result: Raw, version: A2AVersion) -> MessagePart:
    value = decode_value(result) if bytes(result).lstrip()[:1] == b'"' else None
    return version.text(value) if isinstance(value, str) else version.data(result)


def metadata_of(task: TaskView, *, with_progress: bool = True) -> Metadata:
    """Return the metadata of a task: progress, actor, reason and times."""
    values: dict[str, object | UnsetType] = {
        "progress_percent": task.progress_percent if with_progress else UNSET,
        "actor": task.actor or UNSET,
        "reason": task.reason or UNSET,
        "created_at": task.created_at,
        "deadline_at": task.deadline_at or UNSET,
    }
    return {name: value for name, value in values.items() if value is not UNSET}
