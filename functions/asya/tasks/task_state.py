"""The state of a task, as far as it decides on a hop (`protocol §5.4`)."""

import msgspec

from asya.protocol import states

# The status of a task without a record.
UNKNOWN = states.UNKNOWN


class StateQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A task, and the root of its tree if it is a child."""

    id: str
    root_id: str | None = None


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one task; `unknown` if it has no record.

    Attributes:
        generation: the record's present generation.
        pause_epoch: the position of the last pause of that generation, resumed or not; None without one.
        root_status: the status of the root of its tree; None for a root.
    """

    id: str
    status: str
    generation: int = 0
    pause_epoch: int | None = None
    root_status: str | None = None

    @property
    def is_canceled(self) -> bool:
        """Whether the task or its root is canceled."""
        return states.CANCELED in (self.status, self.root_status)
