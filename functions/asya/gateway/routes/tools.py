"""Calls a tool and waits for the result: `POST /tools/call`, `/mcp` and `/a2a` (`protocol §13`, tools)."""

import hashlib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from asya.function.lambdas.environment import Environment
from asya.gateway.access import AccessRules
from asya.gateway.aws.long_poll_permits import LongPollPermits
from asya.gateway.http.origin import Origins
from asya.gateway.http.router import Request, Response, check_size, idempotency_key, preferred_wait, required_identity
from asya.protocol import states
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import MeshTable
from asya.protocol.states import ViewStatus
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts.aws.task_starter import Prepare, TaskStarter, unchanged
from asya.tasks.starts.idempotency import IdempotencyKey
from asya.tasks.starts.submission import Origin, first_message
from asya.tasks.starts.tool_schemas import validate
from asya.tasks.starts.tools import ToolInvocation, read_invocation, tool_submission
from asya.tasks.view import TaskView

# API Gateway times out after 30 seconds.
WAIT_SECONDS = 25.0
_FIRST_DELAY, _MAX_DELAY = 0.1, 1.0  # seconds


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Starts tasks on the routes of tools, and waits for them.

    Attributes:
        permits: bound the calls that wait; a call holds its permits from before the start of its task until its answer.
        new_id: creates the id of a task.
    """

    mesh: MeshTable
    tasks: Tasks
    starter: TaskStarter
    permits: LongPollPermits
    environment: Environment
    new_id: Callable[[], str]

    def start(
        self,
        invocation: ToolInvocation,
        owner: str,
        origin: Origin,
        now: datetime,
        key: IdempotencyKey | None = None,
        *,
        prepare: Prepare = unchanged,
    ) -> str:
        """Start a task on the route of a tool and return its id.

        Args:
            invocation: the tool and its arguments.
            owner: the principal of the caller.
            origin: the origin of the envelope.
            now: the creation time of the task.
            key: the idempotency key of the request.
            prepare: completes the record before the task starts.

        Raises:
            ApiError: 404 for an unknown tool, 400 for invalid arguments, 413, 503, and 409 for a conflict of the key.
            TaskStoreError: the record was not written.
        """
        compose = first_message(tool_submission(invocation, self.mesh, validate), origin, self.mesh)
        if key is not None:
            return self.starter.start_once(compose, key, self.new_id(), now, prepare)
        return self.starter.start(compose, owner, self.new_id(), now, prepare)

    def wait(
        self,
        task_id: str,
        now: datetime,
        seconds: float | None = None,
        *,
        on_read: Callable[[TaskView], None] | None = None,
    ) -> TaskView | None:
        """Wait until a task ends or pauses, or until the time limit; None if the task does not exist.

        Args:
            task_id: the id of the task.
            now: the time at the start of the wait.
            seconds: the time limit; None for the largest.
            on_read: called with the task after each read.

        Raises:
            TaskStoreError: the table is unavailable.
        """
        seconds = WAIT_SECONDS if seconds is None else seconds
        started_at = self.environment.monotonic()
        delay = _FIRST_DELAY
        while True:
            elapsed = self.environment.monotonic() - started_at
            task = self.tasks.read(task_id, now + timedelta(seconds=elapsed))
            remaining = seconds - elapsed
            if task is not None and on_read is not None:
                on_read(task)
            if task is None or task.is_at_rest or remaining <= 0:
                return task
            self.environment.sleep(min(delay, remaining))
            delay = min(delay * 1.3, _MAX_DELAY)


def wait_seconds(preferred: float | None) -> float:
    """Return the time limit of a wait: the preferred one, within the largest."""
    return WAIT_SECONDS if preferred is None else min(WAIT_SECONDS, preferred)


def status_url(base_url: str, task_id: str) -> str:
    """The URL of a task."""
    return f"{base_url}/api/v1/mesh/{quote(task_id, safe='')}"


def stream_url(base_url: str, task_id: str) -> str:
    """The URL of a task's stream."""
    return f"{status_url(base_url, task_id)}/events"


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a call, and the URLs of its task."""

    id: str
    status: ViewStatus
    result: Raw | UnsetType = UNSET
    result_uri: str | None = None
    error: ErrorInfo | None = None
    reason: str | None = None
    status_url: str
    stream_url: str


@dataclass(frozen=True, slots=True)
class ToolRoutes:
    """Calls tools, and waits for their results."""

    calls: ToolCalls
    access: AccessRules
    origins: Origins

    def call(self, request: Request, now: datetime) -> Response:
        """`POST /tools/call`: 200 with the result, or 202 if the task is still running or paused.

        A call with `Prefer: wait=0` does not wait, so it needs no permit.
        """
        caller = self.access.caller(required_identity(request))
        check_size(request, self.calls.mesh.gateway.max_body)
        digest = hashlib.sha256(b"tools/call\n" + request.body).hexdigest()
        key = idempotency_key(request, caller.principal, digest)
        origin = self.origins.of(request)
        invocation = read_invocation(request.text)
        wait = preferred_wait(request)
        with nullcontext() if wait == 0 else self.calls.permits.hold(caller.principal, now):
            task_id = self.calls.start(invocation, caller.principal, origin, now, key)
            # A task that has just been started is pending. A repetition may find it ended.
            is_known = wait == 0 and key is None
            task = None if is_known else self.calls.wait(task_id, now, wait_seconds(wait))
        answer = ToolAnswer(
            id=task_id,
            status=task.status if task else states.PENDING,
            status_url=status_url(request.base_url, task_id),
            stream_url=stream_url(request.base_url, task_id),
        )
        if task is None or not task.is_terminal:
            return Response(202, answer)
        result = replace(answer, result=task.result, result_uri=task.result_uri, error=task.error, reason=task.reason)
        return Response(200, result)
