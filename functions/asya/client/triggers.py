"""The triggers and the backfills of a mesh, for operators (`protocol §16`, calls of operators)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeVar

import msgspec

from asya.capabilities.triggers.http_calls import (
    BACKFILL,
    BACKFILLS,
    BEGIN_BACKFILL,
    CANCEL_BACKFILL,
    DECIDE_SLOTS,
    FIRE_TRIGGER,
    PAUSE_TRIGGER,
    RESUME_BACKFILL,
    RESUME_TRIGGER,
    TRIGGER,
    TRIGGERS,
)
from asya.capabilities.triggers.operators.answers import (
    BackfillList,
    BackfillRequest,
    BackfillView,
    DecidedSlot,
    DecidedSlots,
    Fired,
    FireRequest,
    SlotsRequest,
    TriggerList,
    TriggerView,
)
from asya.client.calls import to
from asya.client.errors import MeshError, NotFoundError
from asya.client.mesh_client import DEPLOY_ADVICE
from asya.protocol.times import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from asya.api_call import ApiCall
    from asya.client.mesh_client import MeshClient

T = TypeVar("T")


@dataclass(frozen=True)
class Triggers:
    """Shows and changes the triggers and the backfills of a mesh.

    Each method raises a `MeshError` if the caller is no operator, or if the gateway fails or does not answer. A method that
    takes the name of a trigger or the id of a backfill raises a `NotFoundError` if the mesh does not have it.
    """

    mesh: MeshClient

    def all(self) -> list[TriggerView]:
        """Return the triggers by name."""
        return _known(self.mesh.ask(*to(TRIGGERS), TriggerList)).items

    def one(self, name: str) -> TriggerView:
        """Return a trigger with the newest tasks that it started."""
        return self._of_trigger(TRIGGER, name)

    def pause(self, name: str) -> TriggerView:
        """Pause a trigger: it starts nothing by itself."""
        return self._of_trigger(PAUSE_TRIGGER, name)

    def resume(self, name: str) -> TriggerView:
        """Resume a paused trigger; its schedule begins now."""
        return self._of_trigger(RESUME_TRIGGER, name)

    def fire(self, name: str, at: str | None, key: str) -> str:
        """Start a task of a schedule, and return its id. The task exists a moment later.

        Args:
            name: The trigger.
            at: The slot, a time or a local time in the zone of the schedule; None for now.
            key: The idempotency key of a call without a slot.
        """
        body = msgspec.json.encode(FireRequest(at=at))
        answer = self.mesh.ask(*to(FIRE_TRIGGER, trigger=name), Fired, body, key)
        return (answer or self._missing(name)).id

    def decide(self, until: datetime) -> Iterator[DecidedSlot]:
        """Decide the slots up to a time, on a local cloud, and yield them in order."""
        body = msgspec.json.encode(SlotsRequest(until=format_time(until)))
        has_more = True
        while has_more:
            answer = _known(self.mesh.ask(*to(DECIDE_SLOTS), DecidedSlots, body))
            yield from answer.items
            has_more = answer.has_more

    def backfills(self) -> list[BackfillView]:
        """Return the backfills, the newest first."""
        return _known(self.mesh.ask(*to(BACKFILLS), BackfillList)).items

    def begin(self, request: BackfillRequest, key: str) -> BackfillView:
        """Begin a backfill, or only count its slots with `dry_run`.

        Args:
            request: What to start.
            key: The idempotency key: a repeated one begins no second backfill.
        """
        body = msgspec.json.encode(request)
        return self.mesh.ask(*to(BEGIN_BACKFILL), BackfillView, body, key) or self._missing(request.trigger)

    def backfill(self, backfill_id: str) -> BackfillView:
        """Return a backfill."""
        return self._of_backfill(BACKFILL, backfill_id)

    def resume_backfill(self, backfill_id: str) -> BackfillView:
        """Let a stopped backfill go on."""
        return self._of_backfill(RESUME_BACKFILL, backfill_id)

    def cancel_backfill(self, backfill_id: str) -> BackfillView:
        """Cancel a backfill and its running tasks."""
        return self._of_backfill(CANCEL_BACKFILL, backfill_id)

    def _of_trigger(self, call: ApiCall, name: str) -> TriggerView:
        return self.mesh.ask(*to(call, trigger=name), TriggerView) or self._missing(name)

    def _of_backfill(self, call: ApiCall, backfill_id: str) -> BackfillView:
        answer = self.mesh.ask(*to(call, id=backfill_id), BackfillView)
        if answer is None:
            raise NotFoundError(f"there is no backfill {backfill_id!r}", "`asya backfill list` shows all.")
        return answer

    def _missing(self, name: str) -> NoReturn:
        """Raise the error for a trigger that the mesh does not have."""
        known = ", ".join(each.name for each in self.all()) or "none"
        raise NotFoundError(
            f"the mesh {self.mesh.connection.namespace!r} has no trigger {name!r}", f"Its triggers are: {known}."
        )


def _known(answer: T | None) -> T:
    """Return the answer of a call that every gateway with triggers knows."""
    if answer is None:
        raise MeshError("the gateway does not know triggers", DEPLOY_ADVICE)
    return answer
