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
from asya.capabilities.a2a.versions import AGENT, STATES, data_part, link_part, text_part
from asya.protocol import states
from asya.protocol.exact_json import encode_json
from asya.protocol.strict_json import decode_value
from asya.tasks.stream_events import StreamPartial
from asya.tasks.view import TaskView

RESULT = "result"


def context_of(task: TaskView) -> str:
    """Return the context id of a task: the client's, or the id of its root, or its own id."""
    return task.context or task.root_id or task.id


def task_of(task: TaskView, *, with_progress: bool = True) -> A2ATask:
    """Return a task in the format of Agent2Agent.

    Args:
        with_progress: Whether the task includes its hops, which its progress derives from.
    """
    return A2ATask(
        id=task.id,
        context_id=context_of(task),
        status=status_of(task),
        artifacts=artifacts_of(task),
        metadata=metadata_of(task, with_progress=with_progress),
    )


def has_stopped(task: TaskView) -> bool:
    """Return whether a task has ended or is paused: nothing happens until a caller acts."""
    return task.is_at_rest


def status_of(task: TaskView) -> A2AStatus:
    """Return the status of a task, with the question of a pause or the error of a failure."""
    parts = _status_parts(task)
    message = A2AMessage(
        message_id=f"{task.id}/{task.generation}/{task.status}/{task.updated_at}",
        role=AGENT,
        parts=parts,
        task_id=task.id,
        context_id=context_of(task),
    )
    return A2AStatus(
        state=STATES[task.status],
        timestamp=task.updated_at,
        message=message if parts else None,
    )


def artifacts_of(task: TaskView) -> tuple[Artifact, ...]:
    """Return the result of a task as an artifact: the value, the link to it, or both."""
    parts = []
    if isinstance(task.result, Raw):
        parts.append(_result_part(task.result))
    if task.result_uri is not None:
        parts.append(link_part(task.result_uri))
    return (Artifact(artifact_id=RESULT, name=RESULT, parts=tuple(parts)),) if parts else ()


def status_update(task: TaskView) -> StatusUpdate:
    """Return a status update of a task."""
    return StatusUpdate(
        task_id=task.id,
        context_id=context_of(task),
        status=status_of(task),
        metadata=metadata_of(task),
    )


def updates(task: TaskView) -> tuple[StatusUpdate | ArtifactUpdate, ...]:
    """Return the updates of a task: its artifacts, then its status."""
    artifact_updates = (
        ArtifactUpdate(
            task_id=task.id,
            context_id=context_of(task),
            artifact=artifact,
            last_chunk=True,
        )
        for artifact in artifacts_of(task)
    )
    return (*artifact_updates, status_update(task))


def partial_update(partial: StreamPartial, task: TaskView) -> StatusUpdate:
    """Return a partial as a status update (`protocol §7`, FLY)."""
    message = A2AMessage(
        message_id=f"{partial.id}/{partial.generation}/{partial.position}/{partial.attempt}/{partial.receive}/{partial.sequence}",
        role=AGENT,
        parts=(data_part(partial.data),),
        task_id=task.id,
        context_id=context_of(task),
    )
    return StatusUpdate(
        task_id=task.id,
        context_id=context_of(task),
        status=A2AStatus(state=STATES[states.RUNNING], timestamp=partial.at, message=message),
        metadata={"actor": partial.actor} | ({} if partial.missed is UNSET else {"missed": partial.missed}),
    )


def _status_parts(task: TaskView) -> tuple[MessagePart, ...]:
    if task.pause is not None:
        question: dict[str, object] = {"fields": task.pause.fields}
        if task.pause.shown is not UNSET:
            question["shown"] = task.pause.shown
        return (text_part(task.pause.prompt), data_part(Raw(encode_json(question))))
    if task.has_failed:
        message = task.error.message if task.error else "the task failed"
        details = {"reason": task.reason, "error": task.error.type if task.error else None}
        return (text_part(message), data_part(Raw(msgspec.json.encode(details))))
    return ()


def _result_part(result: Raw) -> MessagePart:
    value = decode_value(result) if bytes(result).lstrip()[:1] == b'"' else None
    return text_part(value) if isinstance(value, str) else data_part(result)


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
