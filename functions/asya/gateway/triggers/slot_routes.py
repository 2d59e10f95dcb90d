"""Decides slots before their time, on a local cloud (`protocol §16.local`)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.occurrences import slot_key
from asya.capabilities.triggers.operators.answers import DecidedSlot, DecidedSlots, SlotsRequest
from asya.capabilities.triggers.operators.upcoming import upcoming
from asya.gateway.http.router import Request, Response
from asya.protocol import ids
from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import MeshTable
from asya.protocol.request_bodies import read_body
from asya.protocol.times import format_time, parse_time

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
        for moment, names in times[:_TIMES]:
            self.sweep(moment)
            decided += [
                DecidedSlot(trigger=name, at=format_time(moment), id=ids.occurrence_id(name, slot_key(moment)))
                for name in names
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
