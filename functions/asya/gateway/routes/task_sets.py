"""Shows the set of slices that a task waits for (`protocol §13`, set of a task)."""

from dataclasses import dataclass
from datetime import datetime

from asya.capabilities.fan_in.aws.sets import FanInSets
from asya.capabilities.fan_in.set_view import SetView, TaskSet, set_places, set_view
from asya.gateway.access import AccessRules
from asya.gateway.http.router import Request, Response, required_identity
from asya.gateway.http.visible_tasks import visible_task
from asya.protocol.mesh_table import MeshTable
from asya.tasks.aws.table_calls import table_errors
from asya.tasks.aws.tasks import Tasks
from asya.tasks.view import TaskView


@dataclass(frozen=True, slots=True)
class TaskSetRoutes:
    """Reads the set of a task.

    Attributes:
        sets: None if the mesh has no fan-in actor.
    """

    mesh: MeshTable
    tasks: Tasks
    access: AccessRules
    sets: FanInSets | None

    def of_task(self, request: Request, now: datetime) -> Response:
        """`GET /api/v1/mesh/{id}/set`: the set that a task waits for, with the slices that are missing."""
        caller = self.access.caller(required_identity(request))
        task = visible_task(self.tasks, request.parameters["id"], caller, now)
        return Response(200, TaskSet(set=self._set(task)))

    def _set(self, task: TaskView) -> SetView | None:
        if self.sets is None:
            return None
        for place in set_places(task, self.mesh):
            with table_errors(f"read the set {place.set_id}"):
                record = self.sets.get(place.set_id)
            if record is not None:
                return set_view(place, record.state)
        return None
