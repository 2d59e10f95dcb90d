"""What CloudWatch has measured of actors; a local cloud has no metrics."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from asya.capabilities.operations.mesh_numbers import MINUTES, Durations, Rates
from asya.protocol import names

_QUERIES = 500  # of one call
_KEPT = timedelta(seconds=60)
"""CloudWatch counts by the minute, and each metric of a call costs."""


@dataclass(frozen=True, slots=True)
class _Query:
    """A statistic of one metric, in periods of so many seconds. The id names the query within a call."""

    id: str
    metric: str
    statistic: str
    dimensions: dict[str, str]
    namespace: str = names.METRICS_NAMESPACE
    period: int = 60

    def request(self) -> Any:
        """The query in the form of GetMetricData."""
        listed = [{"Name": name, "Value": value} for name, value in self.dimensions.items()]
        metric = {"Namespace": self.namespace, "MetricName": self.metric, "Dimensions": listed}
        return {"Id": self.id, "MetricStat": {"Metric": metric, "Period": self.period, "Stat": self.statistic}}


class ActorMetrics:
    """The metrics of one mesh. Answers are kept for a minute.

    Raises:
        ClientError, BotoCoreError: from every method, if CloudWatch fails or denies access.
    """

    def __init__(self, client: Any, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._rates: dict[str, Rates] = {}
        self._read_at: datetime | None = None

    def rates(self, actors: Sequence[str], now: datetime) -> dict[str, Rates]:
        """Return the rates of the last minutes, by actor."""
        if self._read_at is None or now - self._read_at >= _KEPT or not self._rates.keys() >= set(actors):
            self._rates, self._read_at = self._read_rates(actors, now), now
        return self._rates

    def durations(self, actor: str, now: datetime) -> Durations:
        """Return how long the calls of a handler took in the last hour."""
        dimensions = {"namespace": self._namespace, "actor": actor}
        queries = [
            _Query(name, "HandlerDuration", statistic, dimensions, period=3600)
            for name, statistic in (("median", "p50"), ("high", "p95"))
        ]
        values = self._values(queries, now - timedelta(hours=1), now)
        return Durations(median=_last(values.get("median")), p95=_last(values.get("high")))

    def _read_rates(self, actors: Sequence[str], now: datetime) -> dict[str, Rates]:
        end = now.replace(second=0, microsecond=0)
        queries = [query for number, actor in enumerate(actors) for query in self._rate_queries(number, actor)]
        values = self._values(queries, end - timedelta(minutes=MINUTES), end)
        return {
            actor: Rates(
                received=_per_minute(values.get(f"received_{number}")),
                failed=_per_minute(values.get(f"failed_{number}")),
                oldest=_last(values.get(f"oldest_{number}")),
            )
            for number, actor in enumerate(actors)
        }

    def _rate_queries(self, number: int, actor: str) -> tuple[_Query, ...]:
        own = {"namespace": self._namespace, "actor": actor}
        queue = {"QueueName": names.queue_name(self._namespace, actor)}
        return (
            _Query(f"received_{number}", "Received", "Sum", own),
            _Query(f"failed_{number}", "Processed", "Sum", {**own, "outcome": "failed"}),
            _Query(f"oldest_{number}", "ApproximateAgeOfOldestMessage", "Maximum", queue, namespace="AWS/SQS"),
        )

    def _values(self, queries: Sequence[_Query], start: datetime, end: datetime) -> dict[str, list[float]]:
        """Return the values of each query, newest first."""
        values: dict[str, list[float]] = {}
        requests = [query.request() for query in queries]
        for first in range(0, len(requests), _QUERIES):
            pages = self._client.get_paginator("get_metric_data").paginate(
                MetricDataQueries=requests[first : first + _QUERIES],
                StartTime=start,
                EndTime=end,
                ScanBy="TimestampDescending",
            )
            for result in (result for page in pages for result in page["MetricDataResults"]):
                values.setdefault(result["Id"], []).extend(result.get("Values", []))
        return values


def _per_minute(values: list[float] | None) -> float | None:
    return round(sum(values) / MINUTES, 2) if values else None


def _last(values: list[float] | None) -> float | None:
    return values[0] if values else None
