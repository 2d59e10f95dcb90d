"""The log groups of a mesh's functions in CloudWatch Logs."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from asya.capabilities.operations.log_lines import LogLine
from asya.protocol import names
from asya.protocol.times import format_time

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

_GROUP_NAME = re.compile(r"[.\-_/#A-Za-z0-9]+")
"""What CloudWatch takes as the name of a log group; ids of envelopes may have any characters."""
_MOST_EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class LoggedPage:
    """Lines of a function by time, and the token of the next page; None at the end."""

    lines: list[LogLine]
    token: str | None = None


class LoggedLines(Protocol):
    """The lines that the functions of a mesh have logged."""

    def page(
        self, actor: str, start: float, pattern: str = "", token: str = "", limit: int = _MOST_EVENTS
    ) -> LoggedPage:
        """Read lines of an actor's function.

        Args:
            actor: an actor or a system function; one without logs has no lines.
            start: the earliest time in epoch seconds.
            pattern: a filter of CloudWatch Logs; empty for all lines.
            token: of the page before; empty for the first page.
            limit: the maximum of lines.
        """


class FunctionLogs:
    """The log groups of one mesh.

    Raises:
        ClientError, BotoCoreError: from every method, if CloudWatch Logs fails or denies access.
    """

    def __init__(self, client: "CloudWatchLogsClient", namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    def has_logs(self, actor: str) -> bool:
        """Whether there is a function with logs for an actor."""
        if not _GROUP_NAME.fullmatch(actor):
            return False
        try:
            self._client.filter_log_events(logGroupName=self._group(actor), limit=1)
        except self._client.exceptions.ResourceNotFoundException:
            return False
        return True

    def page(
        self, actor: str, start: float, pattern: str = "", token: str = "", limit: int = _MOST_EVENTS
    ) -> LoggedPage:
        """See `LoggedLines`."""
        more: Any = {"nextToken": token} if token else {}
        try:
            answer = self._client.filter_log_events(
                logGroupName=self._group(actor),
                startTime=max(0, int(start * 1000)),
                filterPattern=pattern,
                limit=min(limit, _MOST_EVENTS),
                **more,
            )
        except self._client.exceptions.ResourceNotFoundException:
            return LoggedPage([])  # an actor that is gone
        lines = [_line(actor, event) for event in answer.get("events", [])]
        return LoggedPage(sorted(lines, key=lambda line: line.at or ""), answer.get("nextToken") or None)

    def lines(self, actor: str, start: float, pattern: str = "") -> Iterator[LogLine]:
        """Read all lines of an actor's function, as `page` does."""
        page = self.page(actor, start, pattern)
        yield from page.lines
        while page.token is not None:
            page = self.page(actor, start, pattern, page.token)
            yield from page.lines

    def _group(self, actor: str) -> str:
        return f"/aws/lambda/{names.function_name(self._namespace, actor)}"


def _line(actor: str, event: Any) -> LogLine:
    at = event["timestamp"]
    return LogLine(
        id=event.get("eventId") or f"{at} {event.get('logStreamName')} {_digest(event['message'])}",
        at=format_time(datetime.fromtimestamp(at / 1000, UTC)),
        actor=actor,
        line=event["message"].rstrip("\n"),
    )


def _digest(message: str) -> str:
    return hashlib.sha256(message.encode("utf-8", "surrogatepass")).hexdigest()[:12]
