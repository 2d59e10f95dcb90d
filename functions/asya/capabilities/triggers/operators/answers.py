"""What operators ask about triggers and backfills, and the answers (`protocol §16`, calls of operators)."""

from typing import Literal

import msgspec

from asya.protocol.states import BackfillState, ViewStatus
from asya.protocol.triggers import ObjectSource
from asya.tasks.view import TaskView

SourceKind = Literal["cron", "s3", "event", "webhook"]


class SlotView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A slot of a schedule and the task that it starts.

    Attributes:
        at: the time of the slot (RFC 3339).
        id: the id of its task.
        status: that of the task; left out if it has not started, or its record has expired.
    """

    at: str
    id: str
    status: ViewStatus | None = None


class LaneView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What waits in the one lane of a trigger.

    Attributes:
        running: the id of the task that the others wait for.
        queued: how many starts wait.
        closes: when the open window ends, unless further occurrences extend it (RFC 3339).
        gathered: the occurrences in the open window.
    """

    running: str | None = None
    queued: int = 0
    closes: str | None = None
    gathered: int = 0


class EventPattern(msgspec.Struct, frozen=True, kw_only=True):
    """Events of an EventBridge bus.

    Attributes:
        pattern: the pattern of a rule: `source`, `detail-type`, `detail` and others.
        bus: the name of the bus.
    """

    pattern: dict[str, object]
    bus: str = "default"


class TriggerView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A trigger of the mesh.

    Attributes:
        kind: its source.
        tool, route: what it starts.
        enabled: whether the deployment has it on.
        paused: whether an operator has paused it.
        cron, timezone: of a schedule.
        objects: which new objects it asks for.
        event: which events it asks for.
        next: the next slots (RFC 3339); none while the trigger is off or paused.
        last: the last slot.
        url: of a webhook.
        lane: what waits, if the trigger has one lane; in the answer about one trigger.
        tasks: the newest tasks that it started; in the answer about one trigger.
    """

    name: str
    kind: SourceKind
    tool: str | None = None
    route: tuple[str, ...] = ()
    enabled: bool
    paused: bool
    overlap: str
    cron: str | None = None
    timezone: str | None = None
    objects: ObjectSource | None = None
    event: EventPattern | None = None
    next: list[str] = []
    last: SlotView | None = None
    url: str | None = None
    lane: LaneView | None = None
    tasks: list[TaskView] = []


class TriggerList(msgspec.Struct, frozen=True, kw_only=True):
    """The triggers of a mesh, by name."""

    items: list[TriggerView]


class FailedSlot(msgspec.Struct, frozen=True):
    """A slot whose task failed or was canceled, or could not start."""

    slot: str
    id: str
    problem: str


class BackfillView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A backfill and its progress.

    Attributes:
        first, until: the earliest and the latest time of a slot.
        total: the number of slots.
        before: how many had a task before.
        waiting: how many are still to start.
        hold_paused: whether a paused task keeps its place.
        paused: how many paused tasks have given their place back.
        running: the newest slots whose tasks run or pause.
        failures: the newest failures.
        problem: why nothing starts although it has not ended.
    """

    id: str
    trigger: str
    state: BackfillState
    timezone: str
    first: str
    until: str
    total: int
    succeeded: int
    failed: int
    before: int
    waiting: int
    at_once: int
    stop_after: int | None = None
    again: bool = False
    hold_paused: bool = False
    paused: int = 0
    running: list[SlotView] = []
    failures: list[FailedSlot] = []
    problem: str | None = None
    by: str
    created_at: str
    updated_at: str


class BackfillList(msgspec.Struct, frozen=True, kw_only=True):
    """The backfills of a mesh, the newest first."""

    items: list[BackfillView]


class BackfillRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The request to begin a backfill; the names are those of the body.

    Attributes:
        from_, to: the range, as days or times.
        hold_paused: whether a paused task keeps its place, so that at most `at_once` tasks run or pause.
        dry_run: only count the slots.
    """

    trigger: str
    from_: str = msgspec.field(name="from")
    to: str
    at_once: int = 1
    stop_after: int | None = None
    again: bool = False
    hold_paused: bool = False
    dry_run: bool = False


class FireRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The request to start a task of a schedule: that of a slot, or one for now."""

    at: str | None = None


class Fired(msgspec.Struct, frozen=True, kw_only=True):
    """The id of the task that starts."""

    id: str


class SlotsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The request to decide the slots up to a time, on a local cloud."""

    until: str


class DecidedSlot(msgspec.Struct, frozen=True, kw_only=True):
    """A slot that was decided, and the id of its task."""

    trigger: str
    at: str
    id: str


class DecidedSlots(msgspec.Struct, frozen=True, kw_only=True):
    """The slots that a call has decided, in order; with `has_more`, another call goes on."""

    items: list[DecidedSlot]
    has_more: bool
