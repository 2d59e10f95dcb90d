"""Tasks of the mesh in the words of Agent2Agent (`protocol §13`, `/a2a`): ids are the mesh's own, both ways."""

import msgspec
from msgspec import UNSET, Raw, UnsetType

from asya.gateway.a2a.types import A2AStatus, Artifact, ArtifactUpdate, Message, Metadata, Part, StatusUpdate, Task
from asya.gateway.a2a.versions import A2AVersion
from asya.protocol.events import TERMINAL_STATUSES
from asya.protocol.strict_json import decode_value
from asya.tasks.stream_events import StreamPartial
from asya.tasks.view import TaskView

RESULT = "result"


def context_of(task: TaskView) -> str:
    """The context of a task: the one its client gave it, else that of the task it came of, else the task itself."""
    return task.context or task.root_id or task.id


def task_of(task: TaskView, version: A2AVersion, *, with_progress: bool = True) -> Task:
    """A task as its client sees it.

    Args:
        with_progress: whether the task's hops have been looked at, which say how far it is.
    """
    return Task(
        id=task.id,
        context_id=context_of(task),
        kind=version.kind("task"),
        status=state_of(task, version),
        artifacts=artifacts_of(task, version),
        metadata=metadata_of(task, with_progress=with_progress),
    )


def has_stopped(task: TaskView) -> bool:
    """Whether nothing more happens to it by itself: it has ended, or somebody is asked."""
    return task.status == "paused" or task.status in TERMINAL_STATUSES


def state_of(task: TaskView, version: A2AVersion) -> A2AStatus:
    """How a task stands, with what a pause asks and what a failure says."""
    parts = _said(task, version)
    message = Message(
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
    """What a task came to: its result, and where that is kept."""
    parts = []
    if isinstance(task.result, Raw):
        parts.append(_result_part(task.result, version))
    if task.result_uri is not None:
        parts.append(version.link(task.result_uri))
    return (Artifact(artifact_id=RESULT, name=RESULT, parts=tuple(parts)),) if parts else ()


def status_update(task: TaskView, version: A2AVersion) -> StatusUpdate:
    """How a task stands."""
    return StatusUpdate(
        kind=version.kind("status-update"),
        task_id=task.id,
        context_id=context_of(task),
        status=state_of(task, version),
        final=has_stopped(task),
        metadata=metadata_of(task),
    )


def updates(task: TaskView, version: A2AVersion) -> tuple[StatusUpdate | ArtifactUpdate, ...]:
    """What is told of a task's change: what it came to, then how it stands."""
    shown = (
        ArtifactUpdate(
            kind=version.kind("artifact-update"),
            task_id=task.id,
            context_id=context_of(task),
            artifact=artifact,
            last_chunk=True,
        )
        for artifact in artifacts_of(task, version)
    )
    return (*shown, status_update(task, version))


def message_update(said: StreamPartial, task: TaskView, version: A2AVersion) -> StatusUpdate:
    """What a handler said to those who look on (`protocol §7`, FLY)."""
    message = Message(
        kind=version.kind("message"),
        message_id=f"{said.id}/{said.generation}/{said.position}/{said.attempt}/{said.receive}/{said.sequence}",
        role=version.agent,
        parts=(version.data(said.data),),
        task_id=task.id,
        context_id=context_of(task),
    )
    return StatusUpdate(
        kind=version.kind("status-update"),
        task_id=task.id,
        context_id=context_of(task),
        status=A2AStatus(state=version.states["running"], timestamp=said.at, message=message),
        final=False,
        metadata={"actor": said.actor},
    )


def _said(task: TaskView, version: A2AVersion) -> tuple[Part, ...]:
    if task.pause is not None:
        asked = {"fields": task.pause.fields}
        return (version.text(task.pause.prompt), version.data(Raw(msgspec.json.encode(asked))))
    if task.status == "failed":
        told = task.error.message if task.error else "the task failed"
        why = {"reason": task.reason, "error": task.error.type if task.error else None}
        return (version.text(told), version.data(Raw(msgspec.json.encode(why))))
    return ()


def _result_part(result: Raw, version: A2AVersion) -> Part:
    value = decode_value(result) if bytes(result).lstrip()[:1] == b'"' else None
    return version.text(value) if isinstance(value, str) else version.data(result)


def metadata_of(task: TaskView, *, with_progress: bool = True) -> Metadata:
    """What the mesh knows beside: how far it is, where, and until when it has time."""
    shown: dict[str, object | UnsetType] = {
        "progress_percent": task.progress_percent if with_progress else UNSET,
        "actor": task.actor or UNSET,
        "reason": task.reason or UNSET,
        "created_at": task.created_at,
        "deadline_at": task.deadline_at or UNSET,
    }
    return {name: value for name, value in shown.items() if value is not UNSET}
