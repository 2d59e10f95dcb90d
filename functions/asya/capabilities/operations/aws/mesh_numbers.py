"""Reads the numbers of a mesh: metrics of actors, states and readers of queues, and job runs."""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from botocore.exceptions import ClientError

from asya.capabilities.operations.mesh_numbers import (
    MINUTES,
    Durations,
    FunctionState,
    Mapping,
    QueueCount,
    QueueState,
    Rates,
    RunNumbers,
    Unread,
    unread,
)
from asya.function.aws.missing_queues import is_missing_queue
from asya.heavy.aws.drains import Drains
from asya.heavy.aws.pending import Pending
from asya.heavy.aws.resident_runs import Residents
from asya.heavy.aws.run_records import RunRecords
from asya.protocol import names, states

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

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
            _Query(f"failed_{number}", "Processed", "Sum", {**own, "outcome": states.FAILED}),
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


_THREADS = 16


class _RedrivePolicy(msgspec.Struct, rename="camel"):
    max_receive_count: int


@dataclass(frozen=True)
class QueueStates:
    """The queues of a mesh.

    Attributes:
        is_threaded: whether queues may be counted in threads.

    Raises:
        ClientError, BotoCoreError: from every method, if SQS fails or denies access.
    """

    sqs: "SQSClient"
    is_threaded: bool = True

    def counts(self, actors: Sequence[str], url: Callable[[str], str]) -> dict[str, QueueCount]:
        """Count the messages of each actor's queue; a queue that is not there has none.

        Args:
            actors: the actors.
            url: returns the URL of an actor's queue.
        """
        urls = [url(actor) for actor in actors]
        if not self.is_threaded or len(urls) < 2:
            return dict(zip(actors, map(self._count, urls), strict=True))
        with ThreadPoolExecutor(_THREADS) as executor:
            return dict(zip(actors, executor.map(self._count, urls), strict=True))

    def state(self, url: str) -> QueueState:
        """Read the settings of a queue."""
        attributes = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        policy = attributes.get("RedrivePolicy")
        return QueueState(
            visibility_timeout=int(attributes["VisibilityTimeout"]),
            retention=int(attributes.get("MessageRetentionPeriod", "345600")),
            max_receives=msgspec.json.decode(policy, type=_RedrivePolicy, strict=False).max_receive_count
            if policy
            else None,
        )

    def _count(self, url: str) -> QueueCount:
        try:
            attributes = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        except ClientError as error:
            if not is_missing_queue(error):
                raise
            return QueueCount()
        waiting = int(attributes["ApproximateNumberOfMessages"]) + int(
            attributes.get("ApproximateNumberOfMessagesDelayed", "0")
        )
        return QueueCount(waiting, int(attributes["ApproximateNumberOfMessagesNotVisible"]))


_KEPT_SECONDS = 10.0
"""One call lists the mappings of the whole account, so several lookers share it."""


@dataclass
class QueueReaders:
    """The readers of the queues of one mesh. What Lambda answers is kept for 10 s.

    Attributes:
        client: the client of Lambda.
        monotonic: the seconds of a clock.
        warn: logs why the state of a function is unknown.

    Raises:
        ClientError, BotoCoreError: from every method, if the mappings cannot be listed.
    """

    client: Any
    namespace: str
    monotonic: Callable[[], float]
    warn: Callable[[str], None]
    _mappings: dict[str, Mapping] = field(default_factory=dict)
    _functions: dict[str, FunctionState] = field(default_factory=dict)
    _read_at: float | None = None

    def unread(self, actors: Collection[str], waiting: Collection[str]) -> dict[str, Unread]:
        """Return why queues are not read, by actor.

        Args:
            actors: the actors whose mappings count.
            waiting: those with messages that wait: of these alone the functions are read, with one call each.
        """
        now = self.monotonic()
        if self._read_at is None or now - self._read_at >= _KEPT_SECONDS:
            self._mappings, self._functions, self._read_at = self._read_mappings(), {}, now
        found = {}
        for actor in actors:
            name = names.function_name(self.namespace, names.runner_of(actor))
            mapping = self._mappings.get(names.queue_name(self.namespace, actor))
            problem = unread(mapping, FunctionState(), name)
            if problem is None and actor in waiting:
                problem = unread(mapping, self._function(name), name)
            if problem is not None:
                found[actor] = problem
        return found

    def _read_mappings(self) -> dict[str, Mapping]:
        pages = self.client.get_paginator("list_event_source_mappings").paginate()
        return {
            str(each["EventSourceArn"]).rpartition(":")[2]: Mapping(each["UUID"], each["State"])
            for page in pages
            for each in page["EventSourceMappings"]
            if "EventSourceArn" in each
        }

    def _function(self, name: str) -> FunctionState:
        if name not in self._functions:
            self._functions[name] = self._read_function(name)
        return self._functions[name]

    def _read_function(self, name: str) -> FunctionState:
        try:
            answer = self.client.get_function_concurrency(FunctionName=name)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return FunctionState(exists=False)
            self.warn(f"the reserved concurrency of {name} is unknown: {error}")
            return FunctionState()
        return FunctionState(reserved=answer.get("ReservedConcurrentExecutions"))


@dataclass(frozen=True, slots=True)
class RunCounter:
    """Counts the job runs and the pending envelopes of heavy actors.

    Raises:
        ClientError, BotoCoreError: if DynamoDB fails or denies access.
    """

    records: RunRecords
    pending: Pending
    residents: Residents
    drains: Drains

    def count(self, actor: str) -> RunNumbers:
        """Count those of one actor."""
        return RunNumbers(
            pending=self.pending.count(actor),
            running=sum(1 for _ in self.records.open_numbers(actor)),
            lingering=sum(not run.is_closed for run in self.residents.all(actor)),
            is_drained=self.drains.get(actor) is not None,
        )
