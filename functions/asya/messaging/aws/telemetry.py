"""Logs and metrics of a function (`protocol §15`): JSON lines and CloudWatch's embedded metric format, both by Powertools."""

import threading
from collections import defaultdict
from typing import Literal

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

METRICS_NAMESPACE = "Asya"
# An embedded metric object holds 100 values of one metric; Powertools writes it out by itself as soon as there are that many.
_VALUES_AT_ONCE = 99

Unit = Literal["Count", "Milliseconds", "Seconds", "Bytes"]
Dimension = Literal["outcome", "kind", "reason", "state"]

# The actor, and one more dimension at most.
_Dimensions = tuple[str, tuple[Dimension, str] | None]
_Series = dict[tuple[str, Unit], list[float]]


class Telemetry:
    """One function's logger and the metrics of the batch at work; `flush` writes them out and forgets them."""

    def __init__(self, namespace: str, actor: str) -> None:
        self.log = Logger(service=actor)
        self.log.append_keys(namespace=namespace, actor=actor)
        self._namespace = namespace
        self._actor = actor
        # Reporters count what they drop from threads of their own.
        self._lock = threading.Lock()
        self._series: dict[_Dimensions, _Series] = defaultdict(lambda: defaultdict(list))

    def count(
        self, name: str, amount: float = 1, *, by: tuple[Dimension, str] | None = None, actor: str | None = None
    ) -> None:
        """Count something, optionally split by one bounded dimension (never an id).

        Args:
            actor: whom it is about, if not the function's own.
        """
        with self._lock:
            values = self._series[actor or self._actor, by][name, "Count"]
            if values:
                values[0] += amount
            else:
                values.append(amount)

    def measure(self, name: str, value: float, unit: Unit, *, actor: str | None = None) -> None:
        """Note one measurement; CloudWatch makes percentiles of them. `actor` as above."""
        with self._lock:
            self._series[actor or self._actor, None][name, unit].append(value)

    def flush(self) -> None:
        """Write the metrics gathered since the last time."""
        with self._lock:
            series, self._series = self._series, defaultdict(lambda: defaultdict(list))
        for (actor, by), metrics in series.items():
            self._write(actor, by, metrics)

    def _write(self, actor: str, by: tuple[Dimension, str] | None, metrics: _Series) -> None:
        while any(metrics.values()):
            # An empty service: Powertools would make it a dimension beside `actor`, and alarms would look in vain.
            writer = EphemeralMetrics(namespace=METRICS_NAMESPACE, service="")
            writer.add_dimension(name="namespace", value=self._namespace)
            writer.add_dimension(name="actor", value=actor)
            if by is not None:
                writer.add_dimension(name=by[0], value=by[1])
            for (name, unit), values in metrics.items():
                for value in values[:_VALUES_AT_ONCE]:
                    writer.add_metric(name=name, unit=MetricUnit[unit], value=value)
                del values[:_VALUES_AT_ONCE]
            writer.flush_metrics()
