"""Logs as JSON lines, metrics in CloudWatch's embedded metric format, and spans of traces (`protocol §15`)."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from aws_lambda_powertools import Logger

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


# An embedded metric object holds 100 values of one metric.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
_MAX_VALUES = 100

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
        for document in _documents(self._namespace, series):
            about = {"Timestamp": time.time_ns() // 1_000_000, "CloudWatchMetrics": document.directives}
            print(msgspec.json.encode({"_aws": about, **document.members}).decode())
        if self.traces is not None:
            self.traces.flush(self._warn_of_dropped_spans)

    def _warn_of_dropped_spans(self, count: int, problem: str) -> None:
        self.log.warning("spans dropped", count=count, problem=problem)


class _Document(msgspec.Struct):
    """One line of metrics: CloudWatch charges for its bytes, so it has as many metrics as one line can have.

    Attributes:
        directives: which members are metrics, and which are their dimensions.
        members: the values of both, by name.
    """

    directives: list[dict[str, Any]]
    members: dict[str, Any]

    def takes(self, dimensions: Mapping[str, str], metrics: Mapping[str, Any]) -> bool:
        """Whether no member has another value here."""
        is_same = all(self.members.get(name, value) == value for name, value in dimensions.items())
        return is_same and self.members.keys().isdisjoint(metrics)


def _documents(namespace: str, series: Mapping[_Dimensions, _Series]) -> Iterator[_Document]:
    """Lay metrics out in lines of the embedded metric format."""
    documents: list[_Document] = []
    for (actor, by), metrics in series.items():
        dimensions: dict[str, str] = {"namespace": namespace, "actor": actor}
        if by is not None:
            dimensions[by[0]] = by[1]
        for start in range(0, max(map(len, metrics.values()), default=0), _MAX_VALUES):
            part = {key: values[start : start + _MAX_VALUES] for key, values in metrics.items() if values[start:]}
            named = {name: _plain(values) for (name, _), values in part.items()}
            document = next((each for each in documents if each.takes(dimensions, named)), None)
            if document is None:
                document = _Document([], {})
                documents.append(document)
            document.members |= {**dimensions, **named}
            document.directives.append(
                {
                    "Namespace": names.METRICS_NAMESPACE,
                    # The second set is the metric of the whole mesh, so that one alarm covers all its actors.
                    "Dimensions": [list(dimensions), ["namespace"]],
                    "Metrics": [{"Name": name, "Unit": unit} for name, unit in part],
                }
            )
    yield from documents


def _plain(values: Sequence[float]) -> float | list[float]:
    """The values with a thousandth at most, and one value alone."""
    rounded = [int(value) if float(value).is_integer() else round(value, 3) for value in values]
    return rounded[0] if len(rounded) == 1 else rounded
