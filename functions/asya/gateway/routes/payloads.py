"""Shows the kept payloads of a task's hops (`protocol §13`, payloads)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.operations.aws.kept_payloads import KeptPayloads
from asya.capabilities.operations.payloads import (
    Copies,
    Copy,
    HopPayloads,
    KeptHops,
    PayloadText,
    actor_at,
    kept_hops,
    read_hop,
)
from asya.gateway.access import AccessRules
from asya.gateway.http.router import Request, Response, required_identity
from asya.gateway.http.visible_tasks import unknown_task
from asya.protocol.api_errors import ApiError
from asya.protocol.ids import is_usable
from asya.protocol.route import Route
from asya.tasks.aws.tasks import Tasks


@dataclass(frozen=True, slots=True)
class PayloadRoutes:
    """Lists and reads the kept payloads of tasks."""

    tasks: Tasks
    access: AccessRules
    payloads: KeptPayloads

    def list(self, request: Request, now: datetime) -> Response:
        """`GET …/{id}/payloads`: the hops of a task with kept payloads."""
        with _available(request.parameters["id"]):
            copies, route = self._find(request, now)
        return Response(200, KeptHops(items=kept_hops(copies, route)))

    def hop(self, request: Request, now: datetime) -> Response:
        """`GET …/{id}/payloads/{hop}`: the payloads before and after one hop."""
        with _available(request.parameters["id"]):
            copies, route = self._find(request, now)
            hop = read_hop(request.parameters["hop"], copies)
            before, after = copies.before.get(hop), copies.after(hop)
            named = before or after
            content = HopPayloads(
                hop=hop,
                actor=actor_at(route, hop),
                generation=(named.generation if named else None) or 0,
                before=self._read(before),
                after=self._read(after),
            )
        return Response(200, content)

    def _read(self, copy: Copy | None) -> PayloadText | None:
        return None if copy is None else self.payloads.read(copy)

    def _find(self, request: Request, now: datetime) -> tuple[Copies, Route | None]:
        """Find the copies of a task, and its route.

        Copies outlive records, so an operator finds them without a record. The last copy then has the route.
        """
        task_id = request.parameters["id"]
        caller = self.access.caller(required_identity(request))
        task = self.tasks.read(task_id, now) if is_usable(task_id) else None
        if not caller.may_see(task.owner if task is not None else None) or not is_usable(task_id):
            raise unknown_task(task_id)
        copies = self.payloads.find(task_id, task)
        if task is not None:
            return copies, task.route
        if not copies.before:
            raise unknown_task(task_id)
        envelope = self.payloads.envelope(copies.before[max(copies.before)])
        return copies, envelope.route if envelope is not None else None


@contextmanager
def _available(task_id: str) -> Iterator[None]:
    """Turn an error of S3 into an answer."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise ApiError(503, "unavailable", f"the payloads of {task_id!r} are unavailable; try again") from error
