"""What the mesh knows about the schedule of a trigger (`protocol §16.due`)."""

from datetime import datetime

import msgspec


class ScheduleState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one schedule.

    Attributes:
        decided: the last slot that was decided, or the time at which the schedule began.
        schedule: the digest of cron and zone that `decided` belongs to.
        paused: whether an operator has paused the trigger.
        off: whether the deployment has turned the trigger off.
    """

    decided: datetime
    schedule: str
    paused: bool = False
    off: bool = False
