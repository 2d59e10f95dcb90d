"""Dead letters as the gateway shows them: bounded, and with why each message failed."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from asya.capabilities.dead_letters.letters import DeadLetter
from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.times import format_time
from asya.tasks.view import TaskView

DEFAULT_LIMIT = 100
LARGEST_LIMIT = 500
BODY_LIMIT = 64 * 1024
"""Bytes of a message's body in an answer; the rest is cut."""
PAGE_LIMIT = 3 * 1024 * 1024
"""Bytes of the bodies of an answer in the form that Lambda returns, which has 6 MB at most."""
SHORT_BODY = 1024
"""Bytes of the bodies of an answer beyond `PAGE_LIMIT`."""
_MESSAGE_LIMIT = 1024
NOT_STARTED = "NotStarted"
GIVEN_UP = "DeliveryExhausted"
"""The type of the error of a message that can start no task."""


class LetterError(msgspec.Struct, frozen=True, kw_only=True):
    """Why an envelope failed: type and message, the message cut to 1,024 characters."""

    type: str
    message: str


class LetterView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One dead letter.

    Attributes:
        actor: the actor or system function that the message was sent to.
        id: the id of the envelope or of its task; that of the SQS message if it belongs to no task.
        hop, generation: of the envelope; left out if the message has no valid envelope.
        sent_at: when the message was sent (RFC 3339).
        receives: how often SQS has delivered the message, reads of its dead-letter queue included.
        deliveries: those to the function: as many as its queue allows. The others are looks at the dead letter. Left out for
            queues of system functions.
        task: the status of the task; left out without a record.
        reason: the reason of the end of the task.
        body: the message as text.
        size: the bytes of the message.
        truncated: whether the body is cut.
    """

    actor: str
    id: str
    message_id: str
    hop: int | None = None
    generation: int | None = None
    sent_at: str
    receives: int
    deliveries: int | None = None
    task: str | None = None
    reason: str | None = None
    error: LetterError | None = None
    body: str
    size: int
    truncated: bool = False


class LetterQueue(msgspec.Struct, frozen=True, kw_only=True):
    """The approximate number of dead letters of an actor; `hidden` ones are being read or redriven by somebody."""

    actor: str
    visible: int
    hidden: int


class LetterPage(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters, and the queues that have some.

    Attributes:
        has_more: whether the answer ends before the queues do.
    """

    items: list[LetterView]
    queues: list[LetterQueue]
    has_more: bool


def read_limit(parameters: Mapping[str, str]) -> int:
    """Read `limit`.

    Raises:
        ApiError: 400 if it is out of range.
    """
    text = parameters.get("limit", str(DEFAULT_LIMIT))
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= LARGEST_LIMIT):
        raise ApiError(400, "invalid_field", f"limit must be a number from 1 to {LARGEST_LIMIT}", "limit")
    return int(text)


def envelope_of(letter: DeadLetter) -> Envelope | None:
    """Return the envelope in a message; None if the message has no valid envelope."""
    return letter.envelope if letter.readable else None


def letter_id(letter: DeadLetter) -> str:
    """Return the id of the envelope or of its task; that of the SQS message if it belongs to no task."""
    return letter.envelope.id if letter.envelope else letter.arrival.message_id


def letter_error(letter: DeadLetter, task: TaskView | None) -> ErrorInfo | LetterError | None:
    """Return why a dead letter failed: the message says it, else its task; the end of a task comes with the next sweep."""
    if letter.problem is not None and letter.actor == names.TRIGGERS:
        return LetterError(type=NOT_STARTED, message=letter.problem)
    envelope = envelope_of(letter)
    error = envelope.status.error if envelope is not None and envelope.status is not None else None
    if error is not None:
        return error
    problem = task.problem if task is not None else None
    if task is not None and task.error is not None:
        return task.error
    if problem is not None:
        return LetterError(type=problem.type, message=problem.message)
    return LetterError(type=GIVEN_UP, message=letter.problem) if letter.problem is not None else None


def letter_view(
    letter: DeadLetter, task: TaskView | None, sent_at: datetime, max_receives: int | None = None
) -> LetterView:
    """Build the view of a dead letter with its whole body; `bounded` cuts it.

    Args:
        letter: the dead letter.
        task: its task; None without a record.
        sent_at: when the message was sent.
        max_receives: the receives after which its queue gives a message up; None if unknown.
    """
    envelope, error = envelope_of(letter), letter_error(letter, task)
    return LetterView(
        actor=letter.actor,
        id=letter_id(letter),
        message_id=letter.arrival.message_id,
        hop=envelope.route.position if envelope else None,
        generation=envelope.generation if envelope else None,
        sent_at=format_time(sent_at),
        receives=letter.arrival.receive_count,
        deliveries=None
        if max_receives is None or letter.problem is not None
        else min(letter.arrival.receive_count, max_receives),
        task=task.status if task else None,
        reason=task.reason if task else None,
        error=LetterError(type=error.type, message=error.message[:_MESSAGE_LIMIT]) if error else None,
        body=letter.arrival.body.decode("utf-8", "replace"),
        size=len(letter.arrival.body),
    )


def bounded(views: list[LetterView]) -> list[LetterView]:
    """Cut the bodies so that all of them fit into one answer, whatever they contain."""
    page: list[LetterView] = []
    total = 0
    for view in views:
        limit = BODY_LIMIT if total < PAGE_LIMIT else SHORT_BODY
        cut = _cut(view, limit) if view.size > limit else view
        # Lambda escapes the answer, whose bodies are escaped, once more.
        total += len(msgspec.json.encode(msgspec.json.encode(cut.body).decode()))
        page.append(cut)
    return page


def _cut(view: LetterView, limit: int) -> LetterView:
    return msgspec.structs.replace(view, body=view.body.encode()[:limit].decode("utf-8", "ignore"), truncated=True)
