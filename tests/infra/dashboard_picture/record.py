"""Records the metrics of a local cloud from the logs of its functions.

A local cloud has no metrics of SQS and Lambda (`docs/reference/local-cloud.md`).
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from tests.cloud.deployed_cloud import DeployedCloud
from tests.infra.dashboard_picture.recording import Recording, Series, Values

_MINUTE = 60
_FAILURES = ("envelope failed", "dead letter", "unreadable message")
_FAILURE_FIELDS = ("envelope_id", "failed_actor", "queue", "reason", "error_type", "error_message")
_KEPT_FAILURES = 20


def record(cloud: DeployedCloud, metrics: set[str], minutes: int, origin: str) -> Recording:
    """Return the last complete minutes of a cloud that is up.

    Args:
        cloud: the cloud.
        metrics: the names of the metrics to record.
        minutes: the length of the recording.
        origin: how it was recorded, for people.

    Raises:
        ValueError: its functions have logged no metrics.
    """
    logs = cloud.client("logs")
    groups = [
        group["logGroupName"]
        for page in logs.get_paginator("describe_log_groups").paginate()
        for group in page["logGroups"]
    ]
    return from_messages(_messages(logs, groups), metrics, minutes, origin)


def from_messages(messages: Iterable[str], metrics: set[str], minutes: int, origin: str) -> Recording:
    """Return the last complete minutes of log messages. Some of them are JSON, and some of these have metrics.

    Raises:
        ValueError: there are no metrics.
    """
    logged = [json.loads(message) for message in messages if message.startswith("{")]
    lines = sorted((line for line in logged if "_aws" in line), key=_minute)
    if not lines:
        raise ValueError("the functions have logged no metrics; send envelopes first")
    end = _minute(lines[-1])
    start = end - minutes
    values: dict[tuple[str, tuple[tuple[str, str], ...]], Values] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if start <= _minute(line) < end:
            for metric, dimensions in _metrics(line):
                if metric in metrics:
                    values[metric, dimensions][_minute(line) - start] += [_short(each) for each in _list(line[metric])]
    series = [
        Series(metric, dict(dimensions), {at: sorted(each) for at, each in of_minutes.items()})
        for (metric, dimensions), of_minutes in sorted(values.items())
    ]
    failures = sorted(
        (_failure(line) for line in logged if line.get("message") in _FAILURES), key=lambda each: each["@timestamp"]
    )
    return Recording(
        origin, datetime.fromtimestamp(start * _MINUTE, UTC), minutes, series, failures[: -_KEPT_FAILURES - 1 : -1]
    )


def _messages(logs: Any, groups: list[str]) -> Iterator[str]:
    for group in groups:
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group):
            yield from (event["message"] for event in page["events"])


def _metrics(line: dict[str, Any]) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Yield each metric of an EMF line with its longest set of dimensions. The other set is the whole mesh."""
    for group in line["_aws"]["CloudWatchMetrics"]:
        names = max(group["Dimensions"], key=len)
        for metric in group["Metrics"]:
            yield metric["Name"], tuple((name, line[name]) for name in names)


def _failure(line: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that the dashboard may show, with the time as CloudWatch shows it."""
    time = line["timestamp"].partition("+")[0].replace(",", ".")
    return {"@timestamp": time, **{name: line[name] for name in _FAILURE_FIELDS if name in line}}


def _minute(line: dict[str, Any]) -> int:
    return int(line["_aws"]["Timestamp"]) // (1000 * _MINUTE)


def _list(value: Any) -> list[float]:
    return value if isinstance(value, list) else [value]


def _short(value: float) -> float:
    return int(value) if value == int(value) else round(value)
