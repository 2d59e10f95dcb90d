"""Where push notifications of a task go: given, shown, taken back (`protocol §13`, `tasks/pushNotificationConfig`).

The notifications themselves are made of the changes of the tasks table (`asya.gateway.a2a.lambdas.push_feed`).
"""

from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from asya.gateway.a2a.aws.push_configs import MOST, PushConfigStore
from asya.gateway.a2a.push import ID_LIMIT, PushTarget, target_of
from asya.gateway.a2a.requests import (
    PUSH_NOT_SUPPORTED,
    TASK_NOT_FOUND,
    A2AError,
    PushParams,
    SetPushParams,
    read_params,
)
from asya.gateway.a2a.types import Authentication, PushConfig
from asya.gateway.a2a.versions import A2AVersion
from asya.gateway.json_rpc import INVALID_PARAMS, RpcMessage
from asya.protocol.mesh_table import MeshTable
from asya.protocol.task import TaskRecord
from asya.protocol.times import parse_time
from asya.tasks.aws.tasks import Tasks
from asya.tasks.view import TaskView


@dataclass(frozen=True, slots=True)
class PushConfigRef:
    """A configuration of a task; None: the one it has."""

    task_id: str
    config_id: str | None


@dataclass(frozen=True, slots=True)
class PushConfigCalls:
    """Keeps them. Whose task it is has been looked at before."""

    mesh: MeshTable
    tasks: Tasks
    configs: PushConfigStore

    def read_config(self, call: RpcMessage, version: A2AVersion) -> PushConfig:
        """The configuration that a call gives, with its task.

        Raises:
            A2AError: if it is none, or names no task.
        """
        if version.tags_kinds:
            params = read_params(call, SetPushParams)
            return replace(params.push_notification_config, task_id=params.task_id)
        config = read_params(call, PushConfig)
        if not config.task_id:
            raise A2AError(INVALID_PARAMS, "taskId is missing", "taskId")
        return config

    def place(self, params: PushParams, version: A2AVersion) -> PushConfigRef:
        """Which one is meant.

        Raises:
            A2AError: if no task is named.
        """
        task_id = params.id if version.tags_kinds else params.task_id
        config_id = params.push_notification_config_id if version.tags_kinds else params.id
        if not task_id:
            raise A2AError(INVALID_PARAMS, "the task is not named", "id" if version.tags_kinds else "taskId")
        if config_id and len(config_id.encode("utf-8", "surrogatepass")) > ID_LIMIT:
            raise A2AError(INVALID_PARAMS, f"task {task_id!r} has no configuration of so long an id", "id")
        return PushConfigRef(task_id, config_id or None)

    def target(self, config: PushConfig, version: A2AVersion) -> PushTarget:
        """What is kept of a configuration.

        Raises:
            A2AError: if it cannot be, or the mesh sends none.
        """
        if not self.mesh.tools:
            raise A2AError(PUSH_NOT_SUPPORTED, "a mesh without tools sends no push notifications")
        if config.id and len(config.id.encode("utf-8", "surrogatepass")) > ID_LIMIT:
            raise A2AError(INVALID_PARAMS, f"an id has up to {ID_LIMIT} bytes", "id")
        return target_of(config, version.name, self.mesh.gateway.allowed_hosts)

    def keep(self, task: TaskRecord | TaskView, config_id: str | None, target: PushTarget, now: datetime) -> str:
        """Keep one of a task that is told to be watched by whoever calls this; gives its id, by default the task's."""
        config_id = config_id or task.id
        until = max(now, parse_time(task.deadline_at)) if task.deadline_at else now
        self.configs.put(task.id, config_id, target, until)
        return config_id

    def set(self, config: PushConfig, task: TaskView, version: A2AVersion, now: datetime) -> object:
        """Keep one, then have the task watched: from there on its changes are told, its present state first."""
        task_id, target = task.id, self.target(config, version)
        known = self.configs.all(task_id)
        if len(known) >= MOST and (config.id or task_id) not in known:
            raise A2AError(INVALID_PARAMS, f"task {task_id!r} has {MOST} configurations, as many as there may be", "id")
        config_id = self.keep(task, config.id, target, now)
        if self.tasks.update(task_id, lambda record, _: replace(record, is_watched=True), now) is None:
            raise A2AError(TASK_NOT_FOUND, f"there is no task {task_id!r}", "taskId")
        return version.push_config(_config(task_id, config_id, target))

    def get(self, place: PushConfigRef, version: A2AVersion) -> object:
        """One, by default the task's own or only one."""
        known = self.configs.all(place.task_id)
        config_id = place.config_id or (place.task_id if place.task_id in known else next(iter(known), ""))
        if config_id not in known:
            raise A2AError(INVALID_PARAMS, f"task {place.task_id!r} has no configuration {config_id!r}", "id")
        return version.push_config(_config(place.task_id, config_id, known[config_id]))

    def list(self, task_id: str, version: A2AVersion) -> object:
        """All of a task."""
        found = self.configs.all(task_id).items()
        return version.push_configs(tuple(_config(task_id, config_id, target) for config_id, target in found))

    def delete(self, place: PushConfigRef) -> None:
        """Take one back; what is on its way already may still come."""
        if place.config_id is None:
            raise A2AError(INVALID_PARAMS, "say which configuration is to go", "id")
        self.configs.delete(place.task_id, place.config_id)


def _config(task_id: str, config_id: str, target: PushTarget) -> PushConfig:
    authentication = Authentication(scheme=target.scheme) if target.scheme else None
    return PushConfig(id=config_id, task_id=task_id, url=target.url, token=target.token, authentication=authentication)
