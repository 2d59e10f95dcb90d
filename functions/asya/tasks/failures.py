"""Groups failed tasks by actor and error (`protocol §13`, failures)."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from asya.protocol import states
from asya.protocol.errors import ErrorInfo
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import EARLIER_MESSAGE_LIMIT

if TYPE_CHECKING:
    from asya.tasks.view import TaskView

_UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")
_NAMED = (
    r"u?int(?:2|4|8|16|32|64|96|128|256)|b?float(?:4|8|16|32|64|128)|complex(?:64|128)|decimal(?:32|64|128|256)"
    r"|(?:datetime|timedelta|duration|timestamp)64|(?:date|time)(?:32|64)|n?varchar2"
    r"|utf[-_]?(?:8|16|32)(?:[bl]e|mb[34])?|ucs[-_]?[24]|latin[-_]?[19]|iso[-_]?8859[-_]\d{1,2}|(?:cp|windows[-_])125[0-8]"
    r"|sha[-_]?(?:1|3|224|256|384|512)|md5|base(?:16|32|58|64|85)|crc(?:32|64)c?|x(?:64|86)(?:_64)?|x509|a(?:rm|arch|md)64"
    r"|ipv?[46]|http[123]|h2|oauth[12]|s3[an]?|ec2|k8s|lz4|bz2|h5|mp[34]|db2|(?:py|log|slf|neo)4j"
)
"""Types, encodings, digests, protocols and products that have a number in their name."""
# A caller may have written the text. Without the limits a search would take time by the square of its length.
_PART = r"\w{0,100}"
_NAME = re.compile(
    rf"(?<![\w.$/-])(?:[A-Za-z_]{_PART}[.$]){{2,}}[A-Z]{_PART}[a-z]{_PART}"
    rf"|(?:(?<!\w)[A-Za-z_]{_PART}[.$])?(?<![0-9A-Za-z])[A-Z]{_PART}"
    r"(?:Error|Exception|Failure|Fault|Warning|Type)(?![0-9a-z])"
    rf"|(?<![0-9A-Za-z])(?i:{_NAMED})(?:(?=[A-Z])[A-Za-z]+|(?![0-9A-Za-z]))"
    r"|(?<![0-9A-Za-z])(?:[iu](?:8|16|32|64|128)|f(?:16|32|64))(?![0-9A-Za-z])"
)
"""Names of types: qualified ones, errors, and those that begin with a known name, such as `S3AFileSystem` and `int64`."""
_WORD = re.compile(
    rf"(?P<name>{_NAME.pattern})|(?P<address>\b0x[0-9a-fA-F]+\b)|(?<![0-9A-Za-z]{{20}})[A-Za-z]*\d[0-9A-Za-z]*"
)
"""A name of a type, which keeps its digits, and each other word with a digit."""
_NUMBER = re.compile(r"\d+")
_ID = re.compile(r"(?=.{6})(?:[A-Za-z]*\d+[A-Za-z]+\d[0-9A-Za-z]*|\d+[A-Za-z]{4,}|[A-Za-z]+\d+[A-Za-z]{4,})")
"""A word in which letters and digits alternate, such as `00bss0ojnopziwff`, and not `250ms`."""
_DIGEST = re.compile(r"[0-9a-fA-F]{7,}")
_RUN_OF_NUMBERS = re.compile(r"#(?:\.#)+")
_NAME_LIMIT = 63
"""Characters of the name of an actor. A report may name a longer one."""
_KIND_LIMIT = 300
"""Characters of the error of a group: it is shown in tables, and given as a filter."""


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks that failed at one actor with the same error.

    Attributes:
        actor: the actor at which they failed; empty if it is unknown.
        error: type and first line of their error, at most 300 characters, with numbers, times and ids of its values as `#`.
        count: the number of tasks.
        first, last: when the first and the last of them were created.
        example: the id of the last one.
    """

    actor: str
    error: str
    count: int
    first: str
    last: str
    example: str


class FailureList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The groups of one page of failed tasks, most tasks first.

    `next_cursor` is set if there are more tasks. A group may go on there: `merged` adds the pages up.

    Attributes:
        resolved: failed tasks that the groups leave out, because they are settled or go on in a failed replay.
    """

    items: list[FailureGroup]
    resolved: int = 0
    next_cursor: str | None = None


def shortened_error(error: ErrorInfo | None) -> ErrorInfo | None:
    """The error as lists show it: type and message, at most 1,024 characters of it."""
    return error and ErrorInfo(type=error.type, message=error.message[:EARLIER_MESSAGE_LIMIT])


def failure_text(status: str, error: ErrorInfo | None, reason: str | None) -> str:
    """The error of a task, such as `KeyError: 'price'`; else the reason of a failed or canceled one, or nothing."""
    if error is not None:
        return f"{error.type}: {error.message}"
    return (reason or "") if status in states.ENDED_BADLY else ""


def failure_kind(status: str, error: ErrorInfo | None, reason: str | None) -> str:
    """The error of a task as its group has it: `failure_text` without what differs between tasks of one cause."""
    if error is None:
        return kind_of(failure_text(status, error, reason))
    return kind_of(error.message, error.type)


def kind_of(message: str, type_name: str = "") -> str:
    """The first line of an error without what differs between tasks of one cause: numbers, times and ids are `#`.

    So are characters that cannot be printed: nobody could type the text as a filter. Names of types keep their digits: that of
    the error, and those in its message.
    """
    name, end, _ = type_name.partition("\n")
    line = "" if end else _TIME.sub("#", _UUID.sub("#", message.partition("\n")[0]))
    masked = _RUN_OF_NUMBERS.sub("#", _WORD.sub(_without_number, line))
    kind = (f"{name}: {masked}" if name and not end else name or masked)[:_KIND_LIMIT]
    return kind if kind.isprintable() else "".join(each if each.isprintable() else "#" for each in kind)


def _without_number(word: re.Match[str]) -> str:
    """A word with `#` for its number; an id is `#` as a whole, because parts of it would tell ids apart."""
    text = word[0]
    if word["name"]:
        return text
    return "#" if word["address"] or _ID.fullmatch(text) or _DIGEST.fullmatch(text) else _NUMBER.sub("#", text)


def group_of(task: "TaskRecord | TaskView", retried: ErrorInfo | None = None) -> FailureGroup:
    """The group of one failed task; the summary of its record is enough.

    Args:
        retried: the error after which the task runs again, if it has not failed.
    """
    return FailureGroup(
        actor=(task.actor or "")[:_NAME_LIMIT],
        error=failure_kind(task.status, shortened_error(retried or task.error), task.reason),
        count=1,
        first=task.created_at,
        last=task.created_at,
        example=task.id,
    )


def merged(groups: Iterable[FailureGroup]) -> list[FailureGroup]:
    """Add up the groups of the same actor and error, most tasks first."""
    by_cause: dict[tuple[str, str], FailureGroup] = {}
    for group in groups:
        cause = group.actor, group.error
        known = by_cause.get(cause)
        by_cause[cause] = group if known is None else _sum(known, group)
    return sorted(by_cause.values(), key=lambda group: (-group.count, group.actor, group.error))


def _sum(known: FailureGroup, group: FailureGroup) -> FailureGroup:
    newest = max(known, group, key=lambda each: (each.last, each.example))
    return replace(newest, count=known.count + group.count, first=min(known.first, group.first))
