"""Records the spans of all functions in a process."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from asya.function.aws.telemetry import Traces
from asya.function.spans import Span


@dataclass
class SpanLog:
    """The exported spans, in order."""

    spans: list[Span] = field(default_factory=list)

    def traces(self, *_: object) -> Traces:
        """Return a collector that exports to this log."""
        return Traces(self._export, 1.0, lambda: 0.0)

    def named(self, name: str) -> Span:
        """Return the only span of this name."""
        (span,) = (each for each in self.spans if each.name == name)
        return span

    def parents(self) -> dict[str, str | None]:
        """Return the name of each span with that of its parent; `outside` if no function recorded the parent."""
        names = {span.context.span_id: span.name for span in self.spans}
        return {
            span.name: names.get(span.parent_id, "outside") if span.parent_id is not None else None
            for span in self.spans
        }

    def _export(self, spans: Sequence[Span]) -> None:
        self.spans += spans


def log_spans(monkeypatch: pytest.MonkeyPatch) -> SpanLog:
    """Record the spans of all functions that this process builds from now on."""
    log = SpanLog()
    monkeypatch.setattr("asya.function.lambdas.function.build_traces", log.traces)
    return log
