"""Pauses: the question, the header of the paused envelope, and the release at the end (`protocol §11`)."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_keys import NoKey, Texts
from asya.protocol.status import Reason

FieldType = Literal["string", "number", "boolean", "array", "object"]
ShownType = Literal["string", "number", "boolean", "null", "array", "object"]

DEFAULT_PROMPT = "Task paused"
ANSWERS_LIMIT = 128 * 1024
"""Bytes of a resume's input: the record of the task holds it, and an item of a table may have 400 KB."""


class PauseField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question for the caller who resumes the task."""

    name: Annotated[str, Meta(min_length=1)]
    type: FieldType
    prompt: str = ""
    payload_key: str | None = None
    """A JSON pointer into the payload, by default `/{name}`."""
    required: bool = True
    # The value for a missing answer, and the only valid answers, or entries of an array.
    default: object = None
    options: tuple[object, ...] | None = None

    @property
    def pointer(self) -> str:
        """The JSON pointer to the answer in the payload."""
        if self.payload_key is not None:
            return self.payload_key
        return "/" + self.name.replace("~", "~0").replace("/", "~1")


class ShownValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value of the payload, as those who answer a pause see it.

    Attributes:
        pointer: JSON pointer to the value; empty for the whole payload.
        text: the characters of a text, or the JSON of another value, with the digits that the payload has. None if the payload
            has no such value.
        type: of the value; None without one.
        cut: whether parts of the value are left out.
    """

    pointer: str
    text: str | None = None
    type: ShownType | None = None
    cut: bool = False

    @property
    def name(self) -> str:
        """The pointer, or what it stands for."""
        return self.pointer or "payload"


class Pause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The questions of a pause."""

    prompt: str = DEFAULT_PROMPT
    """The question. `{/total}` stands for the value at this JSON pointer into the payload, `{{` and `}}` for the characters."""
    show: Texts | None = None
    """JSON pointers to the values of the payload that those who answer see; by default the whole payload, shortened."""
    fields: tuple[PauseField, ...] = ()
    """Without fields, the input of a resume is merged into the payload's root."""
    until: Annotated[str | None, NoKey()] = None
    """When the pause ends without an answer; None if only an answer ends it."""
    callback: bool = False
    """Whether a link in the task and in its notifications lets its holder answer the pause, once."""
    callback_key: str | None = None
    """A JSON pointer into the payload, where the link is put too; by default it is not in the payload."""


class PauseHeader(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The header `x-asya-pause` of a paused envelope.

    Attributes:
        epoch: the position of the pause; it orders the pauses of one envelope.
        prompt: the question, with the values of the payload.
        show: as in `Pause`.
        remaining: the seconds from the resume until the deadline; None without a deadline.
        until: when the pause ends without an answer; None if only an answer ends it.
        callback_until: when the link that answers the pause expires; None without a link. The link itself is not stored here.
    """

    epoch: Annotated[int, msgspec.Meta(ge=0, le=999_999)]
    paused_at: str
    prompt: str = DEFAULT_PROMPT
    fields: tuple[PauseField, ...] = ()
    show: tuple[str, ...] | None = None
    remaining: Annotated[float, msgspec.Meta(ge=0)] | None = None
    until: str | None = None
    callback_until: str | None = None


class TaskPause(msgspec.Struct, frozen=True, kw_only=True):
    """The question that a paused task waits for, and the start of the pause.

    Attributes:
        until: when the pause ends without an answer; unset if only an answer ends it.
        callback: the link that answers the pause; its holder may answer. Unset without one.
        shown: what the pause shows of the payload; unset if that is nothing.
    """

    prompt: str
    fields: tuple[PauseField, ...]
    since: str
    until: str | UnsetType = UNSET
    callback: str | UnsetType = UNSET
    shown: tuple[ShownValue, ...] | UnsetType = UNSET

    def without_link(self) -> "TaskPause":
        """The pause for a model: it sees the question, and the link would let it decide (`protocol §11.callback.models`)."""
        return msgspec.structs.replace(self, callback=UNSET)

    def shortened(self) -> "TaskPause":
        """The pause for those who may see it and not answer it: without the link and the values of the payload."""
        return msgspec.structs.replace(self, callback=UNSET, shown=UNSET)


class PauseFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The failure of a task whose envelope is kept in a pause."""

    reason: Reason
    error: ErrorInfo


class PauseRelease(msgspec.Struct, frozen=True, kw_only=True):
    """The release of a paused envelope: the record holds it from before the send until after the send.

    Attributes:
        to: x-resume, or x-sink if the task was canceled or has failed.
        epoch: the epoch of the ended pause.
        input: the validated and completed answers, as a JSON object.
        failure: why the task failed while its envelope was kept; unset for a resume and for a cancellation.
    """

    to: Literal["x-resume", "x-sink"]
    epoch: int
    at: str
    input: Raw | UnsetType = UNSET
    failure: PauseFailure | UnsetType = UNSET
