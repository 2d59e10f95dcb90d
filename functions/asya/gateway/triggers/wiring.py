"""Builds the calls about triggers and backfills."""

from urllib.parse import urlsplit

from asya.capabilities.triggers.aws.operator_queue import OperatorQueue
from asya.capabilities.triggers.lambdas.wiring import (
    build_backfills,
    build_lane_store,
    build_schedule_states,
    build_slot_sweep,
)
from asya.function.aws import clients
from asya.gateway.access import AccessRules
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.routes.cancel import CancelRoutes
from asya.gateway.triggers.backfill_routes import BackfillRoutes
from asya.gateway.triggers.slot_routes import SlotRoutes
from asya.gateway.triggers.trigger_routes import TriggerRoutes
from asya.protocol import names
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.tasks import Tasks


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
