"""CloudWatch Logs with the lines of functions, as Lambda writes them. The emulator ignores the names of streams in searches."""

import json
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from asya.protocol import names

_PAGE = 1000


class _ResourceNotFoundError(ClientError):
    """A log group that does not exist."""


class FakeLogs:
    """The log groups of a mesh.

    Attributes:
        searches: The requests.
    """

    exceptions = SimpleNamespace(ResourceNotFoundException=_ResourceNotFoundError)

    def __init__(self, namespace: str) -> None:
        self.searches: list[dict[str, Any]] = []
        self._namespace = namespace
        self._groups: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def write(self, function: str, at: datetime, message: object, began: datetime | None = None) -> None:
        """Write a line of a function.

        Args:
            message: A text as it is, and anything else as JSON.
            began: When the environment of the function began; its stream has this day. By default at the time of the line.
        """
        runner = names.runner_of(function)
        part = names.log_stream_part(self._namespace, runner) if runner in names.CREW else "/["
        group = self._groups[names.log_group(self._namespace, function)]
        named = {"actor": function, **message} if isinstance(message, dict) else message
        event = {
            "eventId": f"{function} {len(group)}",
            "logStreamName": f"{began or at:%Y/%m/%d}{part}$LATEST][0f]",
            "timestamp": int(at.timestamp() * 1000),
            "message": named if isinstance(named, str) else json.dumps(named),
        }
        group.append(event)

    def filter_log_events(self, **request: Any) -> dict[str, Any]:
        """Search a group, page by page. A pattern is a text in quotes."""
        self.searches.append(request)
        if request["logGroupName"] not in self._groups:
            raise _ResourceNotFoundError({"Error": {"Code": "ResourceNotFoundException"}}, "FilterLogEvents")
        is_found = _search(request)
        found = sorted(filter(is_found, self._groups[request["logGroupName"]]), key=lambda event: event["timestamp"])
        start = int(request.get("nextToken", "t/0").removeprefix("t/"))
        end = start + min(request.get("limit", _PAGE), _PAGE)
        return {"events": found[start:end]} | ({"nextToken": f"t/{end}"} if end < len(found) else {})


def _search(request: dict[str, Any]) -> Callable[[dict[str, Any]], bool]:
    prefix, pattern = request.get("logStreamNamePrefix", ""), request.get("filterPattern", "").strip('"')
    return lambda event: (
        event["timestamp"] >= request.get("startTime", 0)
        and event["logStreamName"].startswith(prefix)
        and pattern in event["message"]
    )
