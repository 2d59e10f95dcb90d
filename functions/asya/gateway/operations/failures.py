"""Groups tasks that failed (`protocol §13`, failures)."""

from dataclasses import dataclass
from datetime import datetime

from asya.gateway.access import AccessRules
from asya.gateway.http.router import Request, Response, required_identity
from asya.gateway.http.visible_tasks import check_owner
from asya.protocol import states
from asya.tasks.aws.failure_groups import Failures
from asya.tasks.failures import FailureList
from asya.tasks.listing import read_list_query

# Every page reads as many tasks as it can, and these lists have one status.
_FIXED = frozenset({"status", "parent", "limit"})


@dataclass(frozen=True, slots=True)
class FailureRoutes:
    """Groups failed tasks by actor and error."""

    failures: Failures
    access: AccessRules

    def groups(self, request: Request, now: datetime) -> Response:
        """`GET /api/v1/operations/failures`: groups of the caller's failed tasks, or of all failed tasks for operators.

        With `retrying=true` these are the groups of running tasks by the error after which they run again.
        """
        caller = self.access.caller(required_identity(request))
        parameters = {name: value for name, value in request.query.items() if name not in _FIXED}
        status = states.RUNNING if parameters.get("retrying") == "true" else states.FAILED
        query = read_list_query(parameters | {"status": status}, "failures", (str, str))
        check_owner(query, caller)
        page = self.failures.page(query, caller.owner_filter, now)
        cursor = query.cursor(page.next) if page.next else None
        return Response(200, FailureList(items=page.groups, resolved=page.resolved, next_cursor=cursor))
