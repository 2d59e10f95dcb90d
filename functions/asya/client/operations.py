"""What the gateway shows of a mesh at work: numbers, logs, groups of failures, sets and kept payloads (`protocol §13`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asya.capabilities.dead_letters.http_calls import FAILURES
from asya.capabilities.fan_in.http_calls import TASK_SET
from asya.capabilities.fan_in.set_view import SetView, TaskSet
from asya.capabilities.operations.http_calls import ACTOR_LINES, NUMBERS
from asya.capabilities.operations.log_lines import LARGEST_LIMIT, LogLine, LogPage
from asya.capabilities.operations.mesh_numbers import MeshNumbers
from asya.capabilities.operations.payloads import KeptHop, KeptHops
from asya.client.calls import to
from asya.client.errors import MeshError, NotFoundError
from asya.client.mesh_client import DEPLOY_ADVICE
from asya.protocol.times import format_time
from asya.tasks.failures import FailureList
from asya.tasks.http_calls import KEPT_HOPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from asya.client.mesh_client import MeshClient
    from asya.tasks.listing import TaskFilter


@dataclass(frozen=True)
class Operations:
    """Reads what a mesh does and what went wrong in it.

    Numbers and logs are for operators. The other methods show each caller the tasks that are its own. Each method raises a
    `MeshError` if the caller has no right to the call, or if the gateway fails or does not answer.
    """

    mesh: MeshClient

    def numbers(self, actors: Sequence[str] | None = None) -> MeshNumbers:
        """Read the mesh in numbers (`protocol §13`, operations).

        Args:
            actors: Only these; None for all.
        """
        query = None if actors is None else {"actor": ",".join(actors)}
        answer = self.mesh.ask(*to(NUMBERS, query), MeshNumbers)
        if answer is None:
            raise MeshError("the gateway does not know the numbers of its mesh", DEPLOY_ADVICE)
        return answer

    def actor_lines(self, actor: str, since: datetime) -> Iterator[LogLine]:
        """Read what the function of an actor has logged since a time (`protocol §13`, operations).

        Raises:
            NotFoundError: The mesh has no such actor.
        """
        query = {"since": format_time(since), "limit": str(LARGEST_LIMIT)}
        while True:
            page = self.mesh.ask(*to(ACTOR_LINES, query, actor=actor), LogPage)
            if page is None:
                raise NotFoundError(f"the mesh {self.mesh.connection.namespace!r} has no actor {actor!r}")
            yield from page.items
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    def failure_pages(self, wanted: TaskFilter) -> Iterator[FailureList]:
        """Read the groups of tasks that failed, or that run again, as many tasks in a page as the gateway takes.

        Args:
            wanted: Which tasks; without a status and a parent.
        """
        query = wanted.parameters()
        while True:
            page = self.mesh.ask(*to(FAILURES, query), FailureList)
            if page is None:
                raise MeshError("the gateway does not group failures", DEPLOY_ADVICE)
            yield page
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    def kept_hops(self, envelope_id: str) -> list[KeptHop]:
        """Return the hops of a task with kept payloads, first to last; none without a task."""
        answer = self.mesh.ask(*to(KEPT_HOPS, id=envelope_id), KeptHops)
        return [] if answer is None else answer.items

    def task_set(self, envelope_id: str) -> SetView | None:
        """Return the set of slices that a task waits for, or in which it has ended; None without one."""
        answer = self.mesh.ask(*to(TASK_SET, id=envelope_id), TaskSet)
        return None if answer is None else answer.set
