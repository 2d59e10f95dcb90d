"""The lanes of triggers: occurrences with the same value at `by`, and what a lane knows (`protocol §16.lane`)."""

import hashlib
import math
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Raw

from asya.capabilities.triggers.occurrences import Occurrence
from asya.protocol import ids
from asya.protocol.json_pointer import parts
from asya.protocol.strict_json import decode_value
from asya.protocol.times import parse_time
from asya.protocol.triggers import Trigger

MOST_QUEUED = 1000
"""Starts that wait in a lane, at most."""

LONGEST_DELAY = 900
"""Seconds by which SQS delays a message, at most."""

WindowKind = Literal["debounce", "batch"]


class LaneFullError(Exception):
    """As many starts as a lane may have wait already."""


class LaneKey(msgspec.Struct, frozen=True):
    """Names a lane: the trigger, and the digest of trigger and value."""

    trigger: str
    digest: str


class Start(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task that a lane starts.

    Attributes:
        id: the id of the task.
        at: the time by which starts are ordered.
        opener: the id of the occurrence that opened the window; None for the start of one occurrence.
        window: what kind of window it comes from.
    """

    id: str
    at: str
    opener: str | None = None
    window: WindowKind | None = None

    @property
    def order(self) -> tuple[str, str]:
        """Starts of one time go by their ids."""
        return self.at, self.id


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """An open window of a lane.

    Attributes:
        start: the start that its end makes.
        due: when it ends.
        latest: when it ends at the latest.
        count: its occurrences.
        size: bytes of their payloads.
        last: time and id of the last occurrence, by the time of its message.
    """

    start: Start
    due: str
    latest: str
    count: int
    size: int
    last: tuple[str, str]


class Lane(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a lane.

    Attributes:
        running: the id of the task that the others wait for.
        starting: starts that were decided, and may not have been performed.
        canceling: ids of tasks whose cancellation was decided, and may not have been performed.
        queued: the number of starts that wait; they are items of their own.
    """

    running: str | None = None
    starting: tuple[Start, ...] = ()
    canceling: tuple[str, ...] = ()
    queued: int = 0
    window: Window | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the lane has nothing to do and nothing to wait for."""
        return self == Lane()

    def starts(self, task_id: str) -> bool:
        """Whether the start of a task is still to be performed."""
        return any(start.id == task_id for start in self.starting)


@dataclass(frozen=True, slots=True)
class Entry:
    """An occurrence that enters its lane.

    Attributes:
        start: the start of this occurrence alone.
    """

    occurrence: Occurrence
    start: Start

    @property
    def size(self) -> int:
        """Bytes of the payload."""
        return len(bytes(self.occurrence.payload))


def lane_of(occurrence: Occurrence, trigger: Trigger) -> LaneKey:
    """The lane of an occurrence."""
    return _lane(occurrence.trigger, _value(occurrence.payload, trigger.by) if trigger.by is not None else None)


def only_lane(name: str, trigger: Trigger) -> LaneKey | None:
    """The lane of a trigger that has one; None for a trigger that has no lanes, or one for each value."""
    return _lane(name, None) if trigger.has_lanes and trigger.by is None else None


def entry_of(occurrence: Occurrence, sent_at: str) -> Entry:
    """The entry of an occurrence: slots are ordered by their time, all others by that of their message."""
    return Entry(occurrence, Start(id=occurrence.task_id, at=occurrence.started_by.slot or sent_at))


def window_key(opener: str) -> str:
    """The key of the start of a window."""
    return f"window {opener}"


def window_start(trigger: str, kind: WindowKind, opener: Start) -> Start:
    """The start that the end of a window makes."""
    return Start(id=ids.occurrence_id(trigger, window_key(opener.id)), at=opener.at, opener=opener.id, window=kind)


def window_kind(trigger: Trigger) -> WindowKind | None:
    """What kind of windows a trigger has; None if it has none."""
    if trigger.debounce is not None:
        return "debounce"
    return "batch" if trigger.batch is not None else None


def check_time(lane: Lane, now: str) -> str | None:
    """From when on the sweep looks at a lane; None for never."""
    if lane.running is not None or lane.starting or lane.canceling or lane.queued:
        return now
    return lane.window.due if lane.window is not None else None


def seconds_until(moment: str, now: datetime) -> int:
    """Whole seconds until a time, from 0 to the longest delay of a message."""
    return min(max(0, math.ceil((parse_time(moment) - now).total_seconds())), LONGEST_DELAY)


def _lane(trigger: str, value: object) -> LaneKey:
    text = msgspec.json.encode([trigger, value], order="sorted")
    return LaneKey(trigger, hashlib.sha256(text).hexdigest()[:32])


def _value(payload: Raw, pointer: str) -> object:
    value: object = decode_value(payload)
    for part in parts(pointer):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and part.isascii() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value
