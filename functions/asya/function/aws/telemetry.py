"""Logs as JSON lines, metrics in CloudWatch's embedded metric format, and the spans of traces (`protocol §15`)."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from asya.function.aws.traces import Traces
from asya.protocol import names

if TYPE_CHECKING:  # functions import no declaration
    from asya.monitoring import Dimension, Unit

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
