"""The collector of spans: what it records, and what it does without an endpoint."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest

from asya.function.aws.settings import Settings, TraceSettings
from asya.function.aws.telemetry import MAX_SPANS, PAUSE_SECONDS, ExportError, Traces, build_traces
from asya.function.spans import Span
from asya.protocol.tracing import TraceContext

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Endpoint:
    """Accepts spans, or refuses them; its clock is set by the test."""

    def __init__(self) -> None:
        self.spans: list[str] = []
        self.warnings: list[tuple[int, str]] = []
        self.calls = 0
        self.is_down = False
        self.seconds = 0.0

    def export(self, spans: Sequence[Span]) -> None:
        self.calls += 1
        if self.is_down:
            raise ExportError("connection refused")
        self.spans += [span.name for span in spans]

    def traces(self, share: float = 1.0) -> Traces:
        return Traces(self.export, share, lambda: self.seconds)

    def warn(self, count: int, problem: str) -> None:
        self.warnings.append((count, problem))


def span(name: str, trace: str = "f" * 32, flags: str = "01") -> Span:
    context = TraceContext(trace, "a" * 16, flags)
    return Span(context=context, parent_id=None, service="score", name=name, started_at=NOW, ended_at=NOW)


def test_a_flush_sends_each_span_once() -> None:
    endpoint = Endpoint()
    traces = endpoint.traces()
    traces.add(span("first"))
    traces.add(None)
    traces.add(span("second"))
    traces.flush(endpoint.warn)
    traces.flush(endpoint.warn)
    assert (endpoint.spans, endpoint.calls, endpoint.warnings) == (["first", "second"], 1, [])


@pytest.mark.rule("15.lost-spans")
def test_protocol_15_an_export_is_bounded() -> None:
    endpoint = Endpoint()
    traces = endpoint.traces()
    for number in range(MAX_SPANS + 2):
        traces.add(span(str(number)))
    traces.flush(endpoint.warn)
    assert (len(endpoint.spans), endpoint.warnings) == (MAX_SPANS, [(2, "one export has 500 spans at most")])


@pytest.mark.rule("15.sample")
@pytest.mark.parametrize(
    ("share", "trace", "flags", "recorded"),
    [
        (1.0, "f" * 32, "01", True),
        (1.0, "f" * 32, "00", False),
        (0.0, "0" * 31 + "1", "01", False),
        (0.5, "f" * 16 + "7" + "f" * 15, "01", True),
        (0.5, "0" * 16 + "8" + "0" * 15, "01", False),
    ],
)
def test_protocol_15_a_share_of_the_traces_is_recorded(share: float, trace: str, flags: str, recorded: bool) -> None:
    endpoint = Endpoint()
    traces = endpoint.traces(share)
    traces.add(span("hop", trace, flags))
    traces.flush(endpoint.warn)
    assert endpoint.calls == int(recorded)


@pytest.mark.rule("15.lost-spans")
def test_protocol_15_no_error_of_an_export_fails_the_invocation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of the user may replace the SDK, or one of its dependencies."""
    monkeypatch.setitem(sys.modules, "asya.function.aws.otlp", None)
    settings = cast("Settings", SimpleNamespace(namespace="shop", traces=TraceSettings(endpoint="http://c", share=1.0)))
    traces = build_traces(settings, lambda: 0.0)
    assert traces is not None
    endpoint = Endpoint()
    traces.add(span("lost"))
    traces.flush(endpoint.warn)
    assert [count for count, _ in endpoint.warnings] == [1]


@pytest.mark.rule("15.lost-spans")
def test_protocol_15_after_a_failure_spans_are_dropped_for_a_minute() -> None:
    endpoint = Endpoint()
    traces = endpoint.traces()
    endpoint.is_down = True
    traces.add(span("lost"))
    traces.flush(endpoint.warn)
    endpoint.is_down = False
    endpoint.seconds = PAUSE_SECONDS - 1
    traces.add(span("dropped"))
    traces.flush(endpoint.warn)
    endpoint.seconds = PAUSE_SECONDS
    traces.add(span("sent"))
    traces.flush(endpoint.warn)
    assert (endpoint.calls, endpoint.spans) == (2, ["sent"])
    assert endpoint.warnings == [(1, "connection refused"), (1, "the export failed less than a minute ago")]
