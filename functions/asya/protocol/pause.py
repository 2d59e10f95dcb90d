"""A pause: what it asks for, what is kept of it while it lasts, what is left to do when it ends (`protocol §11`)."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

FieldType = Literal["string", "number", "boolean", "array", "object"]

DEFAULT_PROMPT = "Task paused"


class PauseField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing to ask the person who resumes.

    Attributes:
        payload_key: JSON pointer to where the answer goes in the payload; `/{name}` if missing.
        default: what stands in for a missing answer; None for none.
        options: the only answers there are; of an array, the only entries.
    """

    name: str
    type: FieldType
    prompt: str = ""
    payload_key: str | None = None
    required: bool = True
    default: object = None
    options: tuple[object, ...] | None = None

    @property
    def pointer(self) -> str:
        """Where in the payload the answer goes."""
        if self.payload_key is not None:
            return self.payload_key
        return "/" + self.name.replace("~", "~0").replace("/", "~1")


class Pause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an actor of kind `pause` asks for. Without fields a resume's input is merged at the payload's root."""

    prompt: str = DEFAULT_PROMPT
    fields: tuple[PauseField, ...] = ()


class PauseHeader(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The header `x-asya-pause` of an envelope that is kept.

    Attributes:
        epoch: the position it paused at: orders the pauses of one envelope.
        remaining: seconds that were left until its deadline; None if it has none.
    """

    epoch: Annotated[int, msgspec.Meta(ge=0, le=999_999)]
    paused_at: str
    prompt: str = DEFAULT_PROMPT
    fields: tuple[PauseField, ...] = ()
    remaining: Annotated[float, msgspec.Meta(ge=0)] | None = None


class TaskPause(msgspec.Struct, frozen=True, kw_only=True):
    """What a task that is paused waits for, and since when."""

    prompt: str
    fields: tuple[PauseField, ...]
    since: str


class PauseRelease(msgspec.Struct, frozen=True, kw_only=True):
    """What is still to be sent of a task that was paused: written before it is sent, taken away afterwards.

    Attributes:
        to: x-resume, or x-sink if it was canceled.
        epoch: of the pause that is over.
        input: what it was resumed with, checked and completed: a JSON object.
    """

    to: Literal["x-resume", "x-sink"]
    epoch: int
    at: str
    input: Raw | UnsetType = UNSET
