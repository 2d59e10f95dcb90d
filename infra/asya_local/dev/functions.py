"""The functions of a mesh without user code: crew, heavy path, reports and sweeps, in this process.

What they have told is kept for the gateway's calls for lines: there are no log groups.
"""

from __future__ import annotations

import pkgutil
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from asya import registry
from asya.capabilities.operations.aws.logs import LoggedPage
from asya.capabilities.operations.log_lines import LogLine
from asya.protocol import names
from asya.protocol.names import LABEL_PATTERN
from asya.protocol.times import format_time, from_epoch_seconds
from asya.sidecar.lambdas.services import Services
from asya_local.dev.telemetry import DevTelemetry

if TYPE_CHECKING:
    from asya.function.aws.settings import Settings
    from asya.function.lambdas.batch import BatchResponse
    from asya.sidecar.lambdas.entry_point import QueueEntryPoint, ScheduleEntryPoint
    from asya_local.dev.deployment import Deployment

Tell = Callable[[str, str], None]


@dataclass(frozen=True)
class DevServices(Services):
    """The services of one function in this process."""

    tell: Tell = print

    @cached_property
    def telemetry(self) -> Any:
        """See `Services`."""
        return DevTelemetry(self.settings.actor, self._only_news)

    def _only_news(self, level: str, text: str) -> None:
        # The author reads of each end from its report.
        if not text.startswith(f"{names.SUMP}: envelope failed"):
            self.tell(level, text)


@dataclass(frozen=True)
class _Context:
    """Lambda's context of an invocation that begins now."""

    ends_at: float

    def get_remaining_time_in_millis(self) -> int:
        """Return the time until the timeout."""
        return int((self.ends_at - time.monotonic()) * 1000)


def build_function(settings: Settings, tell: Tell) -> Callable[[Mapping[str, Any]], BatchResponse]:
    """Build the function of an actor without a handler, or of a queue of the mesh. It processes one batch per call."""
    function = registry.function_of(settings.actor, settings.table)
    assert function.timeout is not None, f"{settings.actor} has a handler"
    entry_point: QueueEntryPoint = pkgutil.resolve_name(function.entry_point)
    invoke, timeout = entry_point.start(DevServices(settings, tell=tell)), function.timeout
    return lambda event: invoke(event, _Context(time.monotonic() + timeout))


def sweep_all(mesh: Deployment, tell: Tell) -> None:
    """Run each scheduled function of a mesh once; one that fails stops no other."""
    for name in registry.sweeps_of(mesh.table):
        entry_point: ScheduleEntryPoint = pkgutil.resolve_name(registry.of(mesh.table).sweeps[name].entry_point)
        try:
            entry_point.sweep(DevServices(mesh.settings(name), tell=tell))
        except Exception as error:  # noqa: BLE001 - the next tick runs it again
            tell("error", f"{name}: failed: {type(error).__name__}: {error}")


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
        since, after = format_time(from_epoch_seconds(start)), int(token) if token.isdecimal() else 0
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
