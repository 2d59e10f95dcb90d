"""Waits: how long an actor holds envelopes, the header of a held envelope, and the wait in its task's record (`protocol §11`)."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from asya.protocol.mesh_keys import Seconds


class Wait(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long a wait actor holds envelopes; exactly one of `for` and `until`."""

    seconds: Annotated[Seconds, Meta(ge=0)] | None = field(default=None, name="for")
    """A duration such as `3d`, from the arrival of the envelope."""
    until: str | None = None
    """A JSON pointer into the payload, to an RFC 3339 time or epoch seconds."""
    deadline: Literal["runs", "stands"] = "runs"
    """Whether the deadline of the task runs on during the wait, or stands still as in a pause."""


class WaitHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The header `x-asya-wait` of a held envelope: when its wait began, and when it is due."""

    since: str
    until: str


class TaskWait(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last wait of a task's present generation.

    Attributes:
        actor: the actor whose queue takes the envelope when it is due.
        position, attempt: the hop that waits; they order the waits of a generation.
        since, until: when the wait began, and when it is due. A canceled task's envelope is due at once.
        is_sent: whether the envelope was sent after the wait.
    """

    actor: str
    position: int
    attempt: int
    since: str
    until: str
    is_sent: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """Orders the waits of one generation."""
        return self.position, self.attempt
