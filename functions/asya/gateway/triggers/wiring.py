"""Builds the calls about triggers and backfills."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from asya.capabilities.triggers.aws.backfills import Backfills
from asya.capabilities.triggers.aws.lane_store import LaneStore
from asya.capabilities.triggers.aws.operator_queue import OperatorQueue
from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.aws.slot_sender import SlotSender
from asya.capabilities.triggers.lambdas.slot_sweep import SlotSweep
from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.aws.telemetry import Telemetry
from asya.function.lambdas.environment import Environment
from asya.gateway.access import AccessRules
from asya.gateway.routes.cancel import CancelRoutes
from asya.gateway.triggers.backfill_routes import BackfillRoutes
from asya.gateway.triggers.slot_routes import SlotRoutes
from asya.gateway.triggers.trigger_routes import TriggerRoutes
from asya.protocol import names
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.tasks import Tasks


def build_trigger_calls(
    settings: Settings, access: AccessRules, tasks: Tasks, lists: TaskLists, new_id: Callable[[], str]
) -> TriggerRoutes:
    """Build the calls about triggers."""
    table = settings.table_name("tasks")
    return TriggerRoutes(
        mesh=settings.table,
        access=access,
        states=ScheduleStates(clients.dynamodb(), table),
        lanes=LaneStore(clients.dynamodb(), table, settings.table.retention.tasks),
        tasks=tasks,
        lists=lists,
        queue=_queue(settings),
        new_id=new_id,
        gateway=settings.gateway_url,
    )


def build_backfill_calls(
    settings: Settings, access: AccessRules, tasks: Tasks, cancels: CancelRoutes, new_id: Callable[[], str]
) -> BackfillRoutes:
    """Build the calls about backfills."""
    backfills = Backfills(clients.dynamodb(), settings.table_name("tasks"), settings.table.retention.tasks)
    return BackfillRoutes(settings.table, access, backfills, tasks, cancels, _queue(settings), new_id)


@dataclass(frozen=True)
class _Sweeping:
    """What the sweep of slots needs of this function."""

    settings: Settings
    telemetry: Telemetry
    environment: Environment

    def now(self) -> datetime:
        """The current time."""
        return self.environment.now()


def build_slot_calls(settings: Settings, telemetry: Telemetry, environment: Environment) -> SlotRoutes:
    """Build the call that decides slots before their time."""
    states = ScheduleStates(clients.dynamodb(), settings.table_name("tasks"))
    sender = SlotSender(clients.sqs(), settings.queue_url(names.TRIGGERS))
    sweep = SlotSweep(_Sweeping(settings, telemetry, environment), states, sender).sweep
    return SlotRoutes(settings.table, states, sweep, is_local)


def is_local() -> bool:
    """Whether the calls of this function reach a local cloud instead of AWS.

    A function on a local cloud has the queue URLs of AWS, so its endpoint tells.
    """
    host = urlsplit(clients.sqs().meta.endpoint_url).hostname or ""
    return not host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))


def _queue(settings: Settings) -> OperatorQueue:
    return OperatorQueue(clients.sqs(), settings.queue_url(names.TRIGGERS))
