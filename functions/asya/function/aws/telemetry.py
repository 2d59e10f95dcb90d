"""Logs as JSON lines, metrics in CloudWatch's embedded metric format, and spans of traces (`protocol §15`)."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from asya.function.aws.settings import Settings
from asya.function.spans import Span, is_recorded
from asya.protocol import names

if TYPE_CHECKING:
    from asya.monitoring import Dimension, Unit

Export = Callable[[Sequence[Span]], None]
"""Sends spans, or raises ExportError."""

# What one export encodes within its time limit. A job run may have 10,000 envelopes.
MAX_SPANS = 500
# A collector that does not answer would slow each invocation down by the time limit of the export.
PAUSE_SECONDS = 60.0


class ExportError(Exception):
    """Spans were not accepted; the message says why."""


class Traces:
    """The recorded spans since the last `flush`.

    A lost span is no lost envelope: after a failure, spans are dropped for a minute.
    """

    def __init__(self, export: Export, share: float, monotonic: Callable[[], float]) -> None:
        """Create the collector.

        Args:
            export: sends spans to the collector, or raises ExportError.
            share: the share of traces to record, from 0 to 1.
            monotonic: a clock in seconds.
        """
        self._export = export
        self._share = share
        self._monotonic = monotonic
        self._spans: list[Span] = []
        self._excess = 0
        self._paused_until = float("-inf")

    def add(self, span: Span | None) -> None:
        """Add a span if its trace is recorded; None stands for an envelope without a trace."""
        if span is None or not is_recorded(span.context, self._share):
            return
        if len(self._spans) < MAX_SPANS:
            self._spans.append(span)
        else:
            self._excess += 1

    def flush(self, warn: Callable[[int, str], None]) -> None:
        """Export the spans.

        Args:
            warn: called with the number of dropped spans and the reason.
        """
        spans, self._spans = self._spans, []
        if not spans:
            return
        if self._excess:
            warn(self._excess, f"one export has {MAX_SPANS} spans at most")
            self._excess = 0
        if self._monotonic() < self._paused_until:
            warn(len(spans), "the export failed less than a minute ago")
            return
        try:
            self._export(spans)
        except Exception as error:  # noqa: BLE001 - no envelope may return to its queue for the sake of a span
            self._paused_until = self._monotonic() + PAUSE_SECONDS
            warn(len(spans), str(error))


def build_traces(settings: Settings, monotonic: Callable[[], float]) -> Traces | None:
    """Build the collector of a function; None in a mesh without `telemetry`."""
    if settings.traces is None:
        return None
    endpoint, namespace = settings.traces.endpoint, settings.namespace

    def export(spans: Sequence[Span]) -> None:
        _exporter(namespace, endpoint)(spans)

    return Traces(export, settings.traces.share, monotonic)


@cache
def _exporter(namespace: str, endpoint: str) -> Export:
    # Imported for the first span: the SDK is in the layers of these meshes alone, and takes a quarter of a second.
    from asya.function.aws.clients import credentials_source
    from asya.function.aws.otlp import otlp_export

    return otlp_export(endpoint, namespace, credentials_source().get_credentials)


# An embedded metric object holds 100 values of one metric; Powertools flushes it by itself at that number.
_MAX_VALUES = 99

# The actor, and at most one more dimension.
_Dimensions = tuple[str, "tuple[Dimension, str] | None"]
_Series = dict[tuple[str, "Unit"], list[float]]


class Telemetry:
    """The logger of a function, and the metrics and spans since the last `flush`.

    Attributes:
        traces: collects spans; None in a mesh without `telemetry`.
    """

    def __init__(self, namespace: str, actor: str, traces: Traces | None = None) -> None:
        self.traces = traces
        self.log = Logger(service=actor)
        self.log.append_keys(namespace=namespace, actor=actor)
        self._namespace = namespace
        self._actor = actor
        # Reporters count dropped reports from their own threads.
        self._lock = threading.Lock()
        self._series: dict[_Dimensions, _Series] = defaultdict(lambda: defaultdict(list))

    def count(
        self, name: str, amount: float = 1, *, by: tuple[Dimension, str] | None = None, actor: str | None = None
    ) -> None:
        """Add to a count.

        Args:
            by: one more dimension with a bounded set of values, never an id.
            actor: the actor that the metric describes, if it is not the function's own.
        """
        with self._lock:
            values = self._series[actor or self._actor, by][name, "Count"]
            if values:
                values[0] += amount
            else:
                values.append(amount)

    def measure(self, name: str, value: float, unit: Unit, *, actor: str | None = None) -> None:
        """Add one measurement, for percentiles in CloudWatch. `actor` is as in `count`."""
        with self._lock:
            self._series[actor or self._actor, None][name, unit].append(value)

    def flush(self) -> None:
        """Write the metrics and export the spans since the last flush."""
        with self._lock:
            series, self._series = self._series, defaultdict(lambda: defaultdict(list))
        for (actor, by), metrics in series.items():
            self._write(actor, by, metrics)
        if self.traces is not None:
            self.traces.flush(self._warn_of_dropped_spans)

    def _warn_of_dropped_spans(self, count: int, problem: str) -> None:
        self.log.warning("spans dropped", count=count, problem=problem)

    def _write(self, actor: str, by: tuple[Dimension, str] | None, metrics: _Series) -> None:
        while any(metrics.values()):
            # The service is empty: Powertools adds a non-empty one as a dimension, and alarms would not match.
            writer = EphemeralMetrics(namespace=names.METRICS_NAMESPACE, service="")
            writer.add_dimension(name="namespace", value=self._namespace)
            writer.add_dimension(name="actor", value=actor)
            if by is not None:
                writer.add_dimension(name=by[0], value=by[1])
            # The second set is the metric of the whole mesh, so that one alarm covers all its actors.
            writer.add_dimensions(namespace=self._namespace)
            for (name, unit), values in metrics.items():
                for value in values[:_MAX_VALUES]:
                    writer.add_metric(name=name, unit=MetricUnit[unit], value=value)
                del values[:_MAX_VALUES]
            writer.flush_metrics()
