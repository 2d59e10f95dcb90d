"""Keeps what functions of a mesh of `asya dev` have told, for the gateway's calls for lines: there are no log groups."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime

from asya.capabilities.operations.aws.function_logs import LoggedPage
from asya.capabilities.operations.log_lines import LogLine
from asya.protocol.names import LABEL_PATTERN
from asya.protocol.times import format_time

Tell = Callable[[str, str], None]

_MOST_LINES = 20_000


class ToldLines:
    """The newest lines of a mesh, in memory; see `LoggedLines`."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._lines: deque[LogLine] = deque(maxlen=_MOST_LINES)
        self._count = 0
        self._lock = threading.Lock()

    def recording(self, tell: Tell) -> Tell:
        """Return a function that keeps what functions tell, and passes all on."""

        def record(level: str, text: str) -> None:
            actor, _, _ = text.partition(": ")
            if LABEL_PATTERN.fullmatch(actor):
                with self._lock:
                    self._count += 1
                    line = LogLine(id=str(self._count), at=format_time(self._now()), actor=actor, line=text)
                    self._lines.append(line)
            tell(level, text)

        return record

    def page(
        self, actor: str, start: float, pattern: str = "", token: str = "", limit: int = _MOST_LINES
    ) -> LoggedPage:
        """See `LoggedLines`; a token is the id of the last line of the page before."""
        since, after = format_time(datetime.fromtimestamp(max(0.0, start), UTC)), int(token or "0")
        with self._lock:
            kept = list(self._lines)
        lines = [
            line
            for line in kept
            if line.actor == actor
            and int(line.id) > after
            and (line.at or "") >= since
            and pattern.strip('"') in line.line
        ]
        return LoggedPage(lines[:limit], lines[limit - 1].id if len(lines) > limit else None)
