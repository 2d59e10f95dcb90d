"""Builds the calls about triggers and backfills, and that about slots before their time (`protocol §16.local`)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from urllib.parse import urlsplit

from asya.capabilities.triggers.aws.queue_senders import OperatorQueue
from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.lambdas.wiring import (
    build_backfills,
    build_lane_store,
    build_schedule_states,
    build_slot_sweep,
)
from asya.capabilities.triggers.occurrences import slot_key
from asya.capabilities.triggers.operators.answers import DecidedSlot, DecidedSlots, SlotsRequest
from asya.capabilities.triggers.operators.views import upcoming
from asya.function.aws import clients
from asya.gateway.access import AccessRules
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.http.router import Request, Response
from asya.gateway.routes.cancel import CancelRoutes
from asya.gateway.triggers.routes import BackfillRoutes, TriggerRoutes
from asya.protocol import ids, names
from asya.protocol.api_errors import ApiError, read_body
from asya.protocol.mesh_table import MeshTable
from asya.protocol.times import format_time, parse_time
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.tasks import Tasks

LONGEST = timedelta(days=366)
_TIMES = 100
"""Times of slots that one call decides; the next call goes on."""


@dataclass(frozen=True, slots=True)
class SlotRoutes:
    """The call that decides slots ahead.

    Attributes:
        sweep: runs the sweep of slots as at a time.
        is_local: whether the mesh runs on a local cloud.
    """

    mesh: MeshTable
    states: ScheduleStates
    sweep: Callable[[datetime], None]
    is_local: Callable[[], bool]

    def decide(self, request: Request, now: datetime) -> Response:
        """`POST /api/v1/triggers`: decide the slots up to a time, in order."""
        if not self.is_local():
            raise ApiError(409, "not_startable", "only a local cloud starts slots before their time")
        until = _until(read_body(request.text, SlotsRequest).until, now)
        self.sweep(now)  # what is due; and new schedules begin
        times = list(islice(upcoming(self.mesh.triggers, self.states.read_all(), now, until), _TIMES + 1))
        decided: list[DecidedSlot] = []
        for moment, trigger_names in times[:_TIMES]:
            self.sweep(moment)
            decided += [
                DecidedSlot(trigger=name, at=format_time(moment), id=ids.occurrence_id(name, slot_key(moment)))
                for name in trigger_names
            ]
        return Response(200, DecidedSlots(items=decided, has_more=len(times) > _TIMES))


def _until(text: str, now: datetime) -> datetime:
    try:
        until = parse_time(text)
    except ValueError as error:
        raise ApiError(400, "invalid_field", f"until: {error}", "until") from None
    if not now < until <= now + LONGEST:
        raise ApiError(400, "invalid_field", "until must be in the future, and within 366 days", "until")
    return until


def build_trigger_calls(own: HttpServices, access: AccessRules, tasks: Tasks, lists: TaskLists) -> TriggerRoutes:
    """Build the calls about triggers."""
    return TriggerRoutes(
        mesh=own.settings.table,
        access=access,
        states=build_schedule_states(own),
        lanes=build_lane_store(own),
        tasks=tasks,
        lists=lists,
        queue=_queue(own),
        new_id=own.new_id,
        gateway=own.settings.gateway_url,
    )


def build_backfill_calls(own: HttpServices, access: AccessRules, tasks: Tasks, cancels: CancelRoutes) -> BackfillRoutes:
    """Build the calls about backfills."""
    mesh, backfills = own.settings.table, build_backfills(own)
    return BackfillRoutes(mesh, access, backfills, tasks, cancels, _queue(own), own.new_id)


def build_slot_calls(own: HttpServices) -> SlotRoutes:
    """Build the call that decides slots before their time."""
    return SlotRoutes(own.settings.table, build_schedule_states(own), build_slot_sweep(own).sweep, is_local)


def is_local() -> bool:
    """Whether the calls of this function reach a local cloud instead of AWS.

    A function on a local cloud has the queue URLs of AWS, so its endpoint tells.
    """
    host = urlsplit(clients.sqs().meta.endpoint_url).hostname or ""
    return not host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))


def _queue(own: HttpServices) -> OperatorQueue:
    return OperatorQueue(clients.sqs(), own.settings.queue_url(names.TRIGGERS))
