"""What CloudWatch would have of a simulated mesh: the lines of its functions, and no metrics."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from asya.capabilities.operations.aws.function_logs import LoggedPage
from asya.capabilities.operations.log_lines import LogLine
from asya.protocol.times import format_time
from asya.testing.services.process import Simulation


@dataclass(frozen=True)
class SimulatedLines:
    """The newest lines that functions have logged; see `LoggedLines`."""

    simulation: Simulation

    def page(self, actor: str, start: float, pattern: str = "", token: str = "", limit: int = 10_000) -> LoggedPage:
        """See `LoggedLines`; a token is the id of the last line of the page before."""
        lines = [
            line
            for at, line in self._logged(actor, int(token or "-1"))
            if at >= start and pattern.strip('"') in line.line
        ]
        return LoggedPage(lines[:limit], lines[limit - 1].id if len(lines) > limit else None)

    def _logged(self, actor: str, after: int) -> Iterator[tuple[float, LogLine]]:
        scheduler = self.simulation.scheduler
        for number, noted in self.simulation.log.numbered:
            if number > after and noted.text.startswith("log: ") and noted.source.partition("/")[0] == actor:
                at = scheduler.at(noted.seconds)
                yield (
                    at.timestamp(),
                    LogLine(id=str(number), at=format_time(at), actor=actor, line=noted.text.removeprefix("log: ")),
                )


class NoMetrics:
    """The client of CloudWatch in a mesh that measures nothing."""

    def get_paginator(self, _operation: str) -> "NoMetrics":
        """Return the paginator of an operation."""
        return self

    def paginate(self, **_request: Any) -> list[dict[str, Any]]:
        """Return the only page."""
        return [{"MetricDataResults": []}]
