"""Calls tools over REST: `POST /tools/call` (`protocol §13`)."""

import hashlib
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from asya.gateway.access import AccessRules
from asya.gateway.http.origin import Origins
from asya.gateway.http.preferences import preferred_wait
from asya.gateway.http.router import Request, Response, check_size, idempotency_key, required_identity
from asya.gateway.routes.tool_calls import ToolCalls, status_url, stream_url, wait_seconds
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import TERMINAL_STATUSES
from asya.protocol.task import ViewStatus
from asya.tasks.starts.tools import read_invocation


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

        A call with `Prefer: wait=0` does not wait, so it needs no slot.
        """
        caller = self.access.caller(required_identity(request))
        check_size(request, self.calls.mesh.gateway.max_body)
        digest = hashlib.sha256(b"tools/call\n" + request.body).hexdigest()
        key = idempotency_key(request, caller.principal, digest)
        origin = self.origins.of(request)
        invocation = read_invocation(request.text)
        wait = preferred_wait(request)
        with nullcontext() if wait == 0 else self.calls.slots.hold(caller.principal, now):
            task_id = self.calls.start(invocation, caller.principal, origin, now, key)
            task = self.calls.wait(task_id, now, wait_seconds(wait))
        answer = ToolAnswer(
            id=task_id,
            status=task.status if task else "pending",
            status_url=status_url(request.base_url, task_id),
            stream_url=stream_url(request.base_url, task_id),
        )
        if task is None or task.status not in TERMINAL_STATUSES:
            return Response(202, answer)
        result = replace(answer, result=task.result, result_uri=task.result_uri, error=task.error, reason=task.reason)
        return Response(200, result)
