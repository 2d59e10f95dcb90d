"""Reads the queries of lists and encodes their cursors (`protocol §13`, lists).

A cursor holds a key at or below the last inspected entry, and a digest of the query. Its holder can decode it: it names tasks
and principals of its holder only (`ListKey.for_owner`). It grants no access: each page checks access when it is read. A forged
or truncated cursor, or a cursor of another list, is rejected.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from asya.protocol.api_errors import ApiError
from asya.tasks.filters import TaskFilter, read_filter
from asya.tasks.timeline import TimelineEntry
from asya.tasks.view import TaskView

DEFAULT_LIMIT = 20
LARGEST_LIMIT = 100
_CURSOR_LIMIT = 2048


class TaskList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of tasks, newest first; `next_cursor` is set if there may be more.

    Attributes:
        resolved: failed tasks that the page leaves out, because they are settled or go on in a failed replay.
    """

    items: list[TaskView]
    resolved: int = 0
    next_cursor: str | None = None


class Timeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of a task's hops, first to last; `next_cursor` is set if there are more."""

    items: list[TimelineEntry]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The query for one page.

    Attributes:
        scope: the list that a cursor is valid for, together with the filters.
        filter: which tasks are listed.
        after: the key in the cursor; empty on the first page.
    """

    scope: str
    filter: TaskFilter = field(default_factory=TaskFilter)
    limit: int = DEFAULT_LIMIT
    after: tuple[str | int, ...] = ()

    def cursor(self, key: Sequence[str | int]) -> str:
        """Encode the cursor of the page that follows a key."""
        return _encode_cursor(self._digest, key)

    @property
    def _digest(self) -> str:
        content = msgspec.json.encode((self.scope, self.filter.parameters()))
        return hashlib.sha256(content).hexdigest()[:16]


def read_list_query(
    parameters: Mapping[str, str], scope: str, key_types: tuple[type, ...], largest: int = LARGEST_LIMIT
) -> ListQuery:
    """Read the filters, `limit` and `cursor`.

    Args:
        scope: the list; a cursor of another list is rejected.
        key_types: the types of the members of a key in this list.
        largest: the upper bound of `limit`.

    Raises:
        ApiError: 400 with the name of the parameter.
    """
    query = ListQuery(scope, read_filter(parameters), _limit(parameters.get("limit"), largest))
    cursor = parameters.get("cursor")
    if cursor is None:
        return query
    after = _decode_cursor(cursor, query._digest)
    if tuple(map(type, after)) != key_types:
        raise _invalid_cursor()
    return replace(query, after=after)


def _limit(text: str | None, largest: int) -> int:
    if text is None:
        return min(DEFAULT_LIMIT, largest)
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= largest):
        raise ApiError(400, "invalid_field", f"limit must be a number from 1 to {largest}", "limit")
    return int(text)


def _encode_cursor(digest: str, key: Sequence[str | int]) -> str:
    content = msgspec.json.encode((digest, *key))
    checksum = hashlib.sha256(content).digest()[:6]
    return base64.urlsafe_b64encode(checksum + content).decode().rstrip("=")


def _decode_cursor(cursor: str, digest: str) -> tuple[str | int, ...]:
    if len(cursor) > _CURSOR_LIMIT or not cursor.isascii():
        raise _invalid_cursor()
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        content = msgspec.json.decode(data[6:], type=tuple[str | int, ...])
    except (ValueError, msgspec.MsgspecError):
        raise _invalid_cursor() from None
    if not content or content[0] != digest or _encode_cursor(digest, content[1:]) != cursor:
        raise _invalid_cursor()
    return content[1:]


def _invalid_cursor() -> ApiError:
    return ApiError(
        400, "invalid_cursor", "the cursor does not belong to this list; start again without a cursor", "cursor"
    )
