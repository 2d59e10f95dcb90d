"""Writes and reads log streams as AWS does: their names, pages of events, and an id for each event.

In the log group of its own name, a function has streams such as `2026/11/29/[$LATEST]0f…`. In any other group Lambda writes
`2026/11/29/{function}[$LATEST][0f…]`. MiniStack writes the first form into every group. Its FilterLogEvents reads all streams of a
group, stops at the limit without a token, and the lines of functions have no `eventId`.

Runs in MiniStack's process, in `.venv-cloud`. It imports nothing of this project.
"""

import itertools
import time
import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

_MOST_EVENTS = 10_000
_PLACE = "place"
"""A member of MiniStack's events, which orders those of one millisecond."""

Position = tuple[int, int, int]
"""The place of an event among those of its group: the time, the time of its arrival, and its number."""


def install(service: ModuleType, logs: ModuleType) -> None:
    """Make MiniStack's Lambda service write, and its log service find, streams as AWS does."""
    emit, find = service._emit_lambda_logs, logs._filter_log_events
    # No number comes twice, also where the events of an earlier start are kept.
    numbers = itertools.count(time.time_ns())

    def emit_lambda_logs(
        func: dict[str, Any], request_id: str, text: str, error: bool, duration_ms: int, **more: Any
    ) -> None:
        config = func.get("config") or func
        function, version = config["FunctionName"], config.get("Version", "$LATEST")
        group = (config.get("LoggingConfig") or {}).get("LogGroup")
        if group not in logs._log_groups or group == f"/aws/lambda/{function}":
            emit(func, request_id, text, error, duration_ms, **more)
            return
        now = datetime.now(UTC)
        stream = f"{now:%Y/%m/%d}/{function}[{version}][{uuid.uuid4().hex}]"
        logs._create_log_stream({"logGroupName": group, "logStreamName": stream})
        report = (
            f"Duration: {duration_ms} ms\tBilled Duration: {duration_ms} ms\tMemory Size: {config['MemorySize']} MB"
        )
        lines = [
            f"START RequestId: {request_id} Version: {version}",
            *text.splitlines(),
            f"END RequestId: {request_id}",
            f"REPORT RequestId: {request_id}\t{report}",
        ]
        at = int(now.timestamp() * 1000)
        events = [{"timestamp": at, "message": line, "ingestionTime": at} for line in lines]
        logs._append_log_events(logs._log_groups[group]["streams"][stream], events)

    def filter_log_events(data: dict[str, Any]) -> Any:
        group = logs._log_groups.get(logs._resolve_log_group_name(data))
        if group is None:
            return find(data)
        try:
            after = _position(data["nextToken"]) if data.get("nextToken") else None
        except ValueError:
            return logs.error_response_json("InvalidParameterException", "The specified nextToken is invalid.", 400)
        matches = logs._compile_filter_pattern(data.get("filterPattern", ""))
        limit = min(data.get("limit") or _MOST_EVENTS, _MOST_EVENTS)
        with logs._log_events_lock:
            streams = [_numbered(name, events, numbers) for name, events in _ranges(group["streams"], data, after)]
        found = (
            (position, {**event, "logStreamName": name})
            for position, name, event in sorted(itertools.chain(*streams), key=lambda entry: entry[0])
            if (after is None or position > after) and matches(event.get("message", ""))
        )
        page = list(itertools.islice(found, limit + 1))
        events = [{key: value for key, value in event.items() if key != _PLACE} for _, event in page[:limit]]
        more = {"nextToken": "/".join(map(str, page[limit - 1][0]))} if len(page) > limit else {}
        return logs.json_response({"events": events, "searchedLogStreams": [], **more})

    service._emit_lambda_logs = emit_lambda_logs  # type: ignore[attr-defined]
    logs._filter_log_events = filter_log_events  # type: ignore[attr-defined]


def _position(token: str) -> Position:
    """Read a token, which is the place of the last event of the page before.

    Raises:
        ValueError: it is no such token.
    """
    timestamp, arrived, number = map(int, token.split("/"))
    return timestamp, arrived, number


def _ranges(
    streams: dict[str, Any], data: dict[str, Any], after: Position | None
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the events of each stream that a search reads, by its names, its times and the page before."""
    names, prefix = data.get("logStreamNames"), data.get("logStreamNamePrefix", "")
    start, end = data.get("startTime"), data.get("endTime")
    if after is not None:
        start = max(start or 0, after[0])
    for name, stream in streams.items():
        if name.startswith(prefix) and (not names or name in names):
            history = stream["events"]
            first = bisect_left(history, start, key=_time) if start is not None else 0
            last = bisect_right(history, end, key=_time) if end is not None else len(history)
            yield name, history[first:last]


def _time(event: dict[str, Any]) -> int:
    return int(event["timestamp"])


def _numbered(
    name: str, events: list[dict[str, Any]], numbers: Iterator[int]
) -> list[tuple[Position, str, dict[str, Any]]]:
    """Return events with their places. One that is read for the first time gets its number, and its id if it has none."""
    numbered = []
    for event in events:
        number = event.setdefault(_PLACE, next(numbers))
        event.setdefault("eventId", f"{event['timestamp']:013d}{number:043d}")
        numbered.append(((event["timestamp"], event.get("ingestionTime", 0), number), name, event))
    return numbered
