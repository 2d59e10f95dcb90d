"""Calling a tool and waiting for it a while: the common part of `/tools/call`, `/mcp` and `/a2a` (`protocol §13`, tools)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from asya.gateway.aws.task_starter import Key, Prepare, TaskStarter, unchanged
from asya.gateway.routes.tool_schemas import validate
from asya.gateway.submission import Origin, first_message
from asya.gateway.tools import ToolInvocation, tool_submission
from asya.messaging.lambdas.environment import Environment
from asya.protocol.events import TERMINAL_STATUSES
from asya.protocol.mesh_table import MeshTable
from asya.tasks.aws.tasks import Tasks
from asya.tasks.view import TaskView

# API Gateway gives up after 30.
WAIT_SECONDS = 25.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 1.0
# What no waiting changes: it has ended, or a person is asked.
_STANDING = frozenset({*TERMINAL_STATUSES, "paused"})


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Starts tasks on the routes of tools, and waits for them.

    Attributes:
        new_id: makes a task's id.
    """

    mesh: MeshTable
    tasks: Tasks
    starter: TaskStarter
    environment: Environment
    new_id: Callable[[], str]

    def start(
        self,
        asked: ToolInvocation,
        owner: str,
        origin: Origin,
        now: datetime,
        key: Key | None = None,
        *,
        prepare: Prepare = unchanged,
    ) -> str:
        """Start a tool's task; gives its id.

        Args:
            key: makes a repetition of the request the same task.
            prepare: adds to the record what is to be known of the task before it starts.

        Raises:
            ApiError: 404 unknown tool, 400 arguments, 413, 503, and 409 about the key.
            TaskStoreError: if its record could not be written.
        """
        compose = first_message(tool_submission(asked, self.mesh, validate), origin, self.mesh)
        if key is not None:
            return self.starter.start_once(compose, key, self.new_id(), now, prepare)
        return self.starter.start(compose, owner, self.new_id(), now, prepare)

    def wait(
        self,
        task_id: str,
        now: datetime,
        seconds: float = WAIT_SECONDS,
        *,
        look: Callable[[TaskView], None] | None = None,
    ) -> TaskView | None:
        """The task once it has ended or pauses, or as it is when the time is up; None if there is none.

        Args:
            now: when the waiting begins.
            look: is shown the task each time that it is read.

        Raises:
            TaskStoreError: if the table cannot be read.
        """
        began = self.environment.monotonic()
        pause = _FIRST_PAUSE
        while True:
            waited = self.environment.monotonic() - began
            task = self.tasks.read(task_id, now + timedelta(seconds=waited))
            left = seconds - waited
            if task is not None and look is not None:
                look(task)
            if task is None or task.status in _STANDING or left <= 0:
                return task
            self.environment.sleep(min(pause, left))
            pause = min(pause * 1.3, _LONGEST_PAUSE)


def status_url(base_url: str, task_id: str) -> str:
    """Where a task's record is read."""
    return f"{base_url}/api/v1/mesh/{quote(task_id, safe='')}"


def stream_url(base_url: str, task_id: str) -> str:
    """Where a task is followed."""
    return f"{status_url(base_url, task_id)}/events"
