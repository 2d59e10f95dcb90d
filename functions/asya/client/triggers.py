"""The triggers and the backfills of a mesh, for operators (`protocol §16`, calls of operators)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeVar
from urllib.parse import quote

import msgspec

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
from asya.client.errors import MeshError, NotFoundError
from asya.client.mesh_client import DEPLOY_ADVICE
from asya.protocol.times import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

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
        return _known(self.mesh.ask("GET", "/api/v1/triggers", TriggerList)).items

    def one(self, name: str) -> TriggerView:
        """Return a trigger with the newest tasks that it started."""
        return self._of_trigger("GET", name, "")

    def pause(self, name: str) -> TriggerView:
        """Pause a trigger: it starts nothing by itself."""
        return self._of_trigger("POST", name, "/pause")

    def resume(self, name: str) -> TriggerView:
        """Resume a paused trigger; its schedule begins now."""
        return self._of_trigger("POST", name, "/resume")

    def fire(self, name: str, at: str | None, key: str) -> str:
        """Start a task of a schedule, and return its id. The task exists a moment later.

        Args:
            name: The trigger.
            at: The slot, a time or a local time in the zone of the schedule; None for now.
            key: The idempotency key of a call without a slot.
        """
        body = msgspec.json.encode(FireRequest(at=at))
        answer = self.mesh.ask("POST", f"{_trigger(name)}/fire", Fired, body, key)
        return (answer or self._missing(name)).id

    def decide(self, until: datetime) -> Iterator[DecidedSlot]:
        """Decide the slots up to a time, on a local cloud, and yield them in order."""
        body = msgspec.json.encode(SlotsRequest(until=format_time(until)))
        has_more = True
        while has_more:
            answer = _known(self.mesh.ask("POST", "/api/v1/triggers", DecidedSlots, body))
            yield from answer.items
            has_more = answer.has_more

    def backfills(self) -> list[BackfillView]:
        """Return the backfills, the newest first."""
        return _known(self.mesh.ask("GET", "/api/v1/backfills", BackfillList)).items

    def begin(self, request: BackfillRequest, key: str) -> BackfillView:
        """Begin a backfill, or only count its slots with `dry_run`.

        Args:
            request: What to start.
            key: The idempotency key: a repeated one begins no second backfill.
        """
        body = msgspec.json.encode(request)
        return self.mesh.ask("POST", "/api/v1/backfills", BackfillView, body, key) or self._missing(request.trigger)

    def backfill(self, backfill_id: str) -> BackfillView:
        """Return a backfill."""
        return self._of_backfill("GET", backfill_id, "")

    def resume_backfill(self, backfill_id: str) -> BackfillView:
        """Let a stopped backfill go on."""
        return self._of_backfill("POST", backfill_id, "/resume")

    def cancel_backfill(self, backfill_id: str) -> BackfillView:
        """Cancel a backfill and its running tasks."""
        return self._of_backfill("DELETE", backfill_id, "")

    def _of_trigger(self, method: str, name: str, action: str) -> TriggerView:
        return self.mesh.ask(method, f"{_trigger(name)}{action}", TriggerView) or self._missing(name)

    def _of_backfill(self, method: str, backfill_id: str, action: str) -> BackfillView:
        path = f"/api/v1/backfills/{quote(backfill_id, safe='')}{action}"
        answer = self.mesh.ask(method, path, BackfillView)
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


def _trigger(name: str) -> str:
    return f"/api/v1/triggers/{quote(name, safe='')}"
