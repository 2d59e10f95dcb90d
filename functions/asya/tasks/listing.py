"""Lists of tasks: what is asked for, and the cursor that goes on where a page ended (`protocol §13`, lists).

A cursor is the place of the last task looked at and a digest of what was asked for. It is nobody's secret and gives no
rights: what a page may show is decided when it is read. One that was made up, cut off or taken from another list is refused.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import msgspec

from asya.protocol.api_errors import ApiError
from asya.protocol.task import TaskStatus
from asya.tasks.timeline import TimelineEntry
from asya.tasks.view import TaskView

DEFAULT_LIMIT = 20
LARGEST_LIMIT = 100
_STATUSES: tuple[str, ...] = get_args(TaskStatus)
_CURSOR_LIMIT = 2048


class TaskList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of tasks, newest first; `next_cursor` where there may be more."""

    items: list[TaskView]
    next_cursor: str | None = None


class Timeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of a task's hops, first to last; `next_cursor` where there are more."""

    items: list[TimelineEntry]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What a page is asked for.

    Attributes:
        scope: what the cursor belongs to, beside status and parent.
        after: the parts of the cursor's place; empty on the first page.
    """

    scope: str
    status: str | None = None
    parent: str | None = None
    limit: int = DEFAULT_LIMIT
    after: tuple[str | int, ...] = ()

    def cursor(self, place: Sequence[str | int]) -> str:
        """The cursor for the page behind a place."""
        return _sealed(self._digest, place)

    @property
    def _digest(self) -> str:
        asked = msgspec.json.encode((self.scope, self.status, self.parent))
        return hashlib.sha256(asked).hexdigest()[:16]


def read_list_query(
    query: Mapping[str, str], scope: str, shape: tuple[type, ...], largest: int = LARGEST_LIMIT
) -> ListQuery:
    """Read `status`, `parent`, `limit` and `cursor`.

    Args:
        scope: of the list: a cursor of another one is refused.
        shape: the types of the parts of a place in it.

    Raises:
        ApiError: 400 naming the parameter.
    """
    status = query.get("status")
    if status is not None and status not in _STATUSES:
        raise ApiError(400, "invalid_field", f"status is one of {', '.join(_STATUSES)}", "status")
    asked = ListQuery(scope, status, query.get("parent"), _limit(query.get("limit"), largest))
    cursor = query.get("cursor")
    if cursor is None:
        return asked
    after = _opened(cursor, asked._digest)
    if tuple(map(type, after)) != shape:
        raise _bad_cursor()
    return ListQuery(scope, status, asked.parent, asked.limit, after)


def _limit(text: str | None, largest: int) -> int:
    if text is None:
        return min(DEFAULT_LIMIT, largest)
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= largest):
        raise ApiError(400, "invalid_field", f"limit is a number from 1 to {largest}", "limit")
    return int(text)


def _sealed(digest: str, place: Sequence[str | int]) -> str:
    content = msgspec.json.encode((digest, *place))
    check = hashlib.sha256(content).digest()[:6]
    return base64.urlsafe_b64encode(check + content).decode().rstrip("=")


def _opened(cursor: str, digest: str) -> tuple[str | int, ...]:
    if len(cursor) > _CURSOR_LIMIT or not cursor.isascii():
        raise _bad_cursor()
    try:
        sealed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        content = msgspec.json.decode(sealed[6:], type=tuple[str | int, ...])
    except (ValueError, msgspec.MsgspecError):
        raise _bad_cursor() from None
    if not content or content[0] != digest or _sealed(digest, content[1:]) != cursor:
        raise _bad_cursor()
    return content[1:]


def _bad_cursor() -> ApiError:
    return ApiError(400, "invalid_cursor", "this is no cursor of this list; begin again without one", "cursor")
