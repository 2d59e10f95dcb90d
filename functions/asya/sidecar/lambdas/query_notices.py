"""Logs and counts the state queries without an answer (`protocol §5.4`, `§15`)."""

from dataclasses import dataclass

from asya.function.aws.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class QueryNotices:
    """The notices of one function; see `asya.tasks.reporting.aws.state_queries.Notices`."""

    telemetry: Telemetry

    def failed(self, problem: str) -> None:
        """Log the cause once for each pause."""
        self.telemetry.log.warning("pre-flight failed; the hops proceed", problem=problem)

    def skipped(self) -> None:
        """Count a batch that proceeds without a query."""
        self.telemetry.count("PreflightsSkipped")
