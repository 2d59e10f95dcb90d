"""Names log streams in shared log groups as Lambda does, and finds streams by the beginning of their names.

In the log group of its own name, a function has streams such as `2026/11/29/[$LATEST]0f…`. In any other group Lambda writes
`2026/11/29/{function}[$LATEST][0f…]`. MiniStack writes the first form into every group, and reads all streams of a group.

Runs in MiniStack's process, in `.venv-cloud`. It imports nothing of this project.
"""

import uuid
from datetime import UTC, datetime
from types import ModuleType
from typing import Any


def install(service: ModuleType, logs: ModuleType) -> None:
    """Make MiniStack's Lambda service write, and its log service find, streams as AWS does."""
    emit, find = service._emit_lambda_logs, logs._filter_log_events

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
        prefix, group = data.get("logStreamNamePrefix"), logs._log_groups.get(logs._resolve_log_group_name(data))
        if prefix is None or group is None:
            return find(data)
        found = [name for name in [*group["streams"]] if name.startswith(prefix)]
        # MiniStack reads all streams if it gets no name. No stream has the name that is only the beginning of one.
        return find({**data, "logStreamNames": found or [prefix]})

    service._emit_lambda_logs = emit_lambda_logs  # type: ignore[attr-defined]
    logs._filter_log_events = filter_log_events  # type: ignore[attr-defined]
