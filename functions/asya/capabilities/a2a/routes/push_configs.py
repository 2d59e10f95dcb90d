"""Calls that set, read, list and delete push configurations (`protocol §13`, `/a2a`).

`asya.capabilities.a2a.lambdas.push` makes the notifications from changes of the tasks table.
"""

from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from asya.capabilities.a2a.aws.push_items import MAX_CONFIGS, PushConfigStore
from asya.capabilities.a2a.push import ID_LIMIT, PushTarget, push_target
from asya.capabilities.a2a.requests import (
    PUSH_NOT_SUPPORTED,
    TASK_NOT_FOUND,
    A2AError,
    PushParams,
    read_params,
)
from asya.capabilities.a2a.types import Authentication, PushConfig, PushConfigList
from asya.gateway.json_rpc import INVALID_PARAMS, RpcMessage
from asya.protocol.mesh_table import MeshTable
from asya.protocol.task import TaskRecord
from asya.protocol.times import deadline_after, parse_time
from asya.tasks.aws.tasks import Tasks
from asya.tasks.view import TaskView


@dataclass(frozen=True, slots=True)
class PushConfigRef:
    """The ids of a task and of its configuration; without a config id, the default one."""

    task_id: str
    config_id: str | None


@dataclass(frozen=True, slots=True)
class PushConfigCalls:
    """Serves push configurations; the caller's access to the task is checked before."""

    mesh: MeshTable
    tasks: Tasks
    configs: PushConfigStore

    def read_config(self, call: RpcMessage) -> PushConfig:
        """Read the configuration in a call, with its task id.

        Raises:
            A2AError: If it is invalid or names no task.
        """
        config = read_params(call, PushConfig)
        if not config.task_id:
            raise A2AError(INVALID_PARAMS, "taskId is missing; set it to the id of a task", "taskId")
        return config

    def read_ref(self, params: PushParams) -> PushConfigRef:
        """Read the ids of the task and the configuration in a call.

        Raises:
            A2AError: If no task is named, or the configuration's id is too long to exist.
        """
        task_id, config_id = params.task_id, params.id
        if not task_id:
            raise A2AError(INVALID_PARAMS, "the id of the task is missing", "taskId")
        if config_id and len(config_id.encode("utf-8", "surrogatepass")) > ID_LIMIT:
            raise A2AError(
                INVALID_PARAMS, f"task {task_id!r} has no such configuration: an id has at most {ID_LIMIT} bytes", "id"
            )
        return PushConfigRef(task_id, config_id or None)

    def target(self, config: PushConfig) -> PushTarget:
        """Validate a configuration and return what is stored of it.

        Raises:
            A2AError: If it is invalid, or the mesh sends no notifications.
        """
        if not self.mesh.tools:
            raise A2AError(PUSH_NOT_SUPPORTED, "this mesh has no tools and sends no push notifications")
        if config.id and len(config.id.encode("utf-8", "surrogatepass")) > ID_LIMIT:
            raise A2AError(INVALID_PARAMS, f"an id must have at most {ID_LIMIT} bytes", "id")
        return push_target(config, self.mesh.gateway.notification_hosts)

    def save(self, task: TaskRecord | TaskView, config_id: str | None, target: PushTarget, now: datetime) -> str:
        """Store a configuration and return its id, by default the task's; the caller marks the task as watched."""
        config_id = config_id or task.id
        deadline = parse_time(task.deadline_at) if task.deadline_at else now
        self.configs.put(task.id, config_id, target, min(max(now, deadline), deadline_after(now)))
        return config_id

    def set(self, config: PushConfig, task: TaskView, now: datetime) -> PushConfig:
        """Store a configuration and mark the task as watched, which sends its current status first."""
        task_id, target = task.id, self.target(config)
        known = self.configs.all(task_id)
        if len(known) >= MAX_CONFIGS and (config.id or task_id) not in known:
            problem = f"task {task_id!r} has {MAX_CONFIGS} configurations, the maximum; delete one first"
            raise A2AError(INVALID_PARAMS, problem, "id")
        config_id = self.save(task, config.id, target, now)
        if self.tasks.update(task_id, lambda record, _: replace(record, is_watched=True), now) is None:
            raise A2AError(TASK_NOT_FOUND, f"there is no task {task_id!r}", "taskId")
        return _config(task_id, config_id, target)

    def get(self, ref: PushConfigRef) -> PushConfig:
        """Return a configuration: the named one, the one with the task's id, or the first."""
        known = self.configs.all(ref.task_id)
        config_id = ref.config_id or (ref.task_id if ref.task_id in known else next(iter(known), ""))
        if config_id not in known:
            raise A2AError(INVALID_PARAMS, f"task {ref.task_id!r} has no configuration {config_id!r}", "id")
        return _config(ref.task_id, config_id, known[config_id])

    def list(self, task_id: str) -> PushConfigList:
        """Return the configurations of a task."""
        targets = self.configs.all(task_id).items()
        return PushConfigList(configs=tuple(_config(task_id, config_id, target) for config_id, target in targets))

    def delete(self, ref: PushConfigRef) -> None:
        """Delete a configuration; notifications on their way may still arrive."""
        if ref.config_id is None:
            raise A2AError(INVALID_PARAMS, "the id of the configuration is missing", "id")
        self.configs.delete(ref.task_id, ref.config_id)


def _config(task_id: str, config_id: str, target: PushTarget) -> PushConfig:
    """Return a stored configuration without its credentials."""
    authentication = Authentication(scheme=target.scheme) if target.scheme else None
    return PushConfig(id=config_id, task_id=task_id, url=target.url, token=target.token, authentication=authentication)
