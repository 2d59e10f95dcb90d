"""Clients that follow streams: curl, a browser page, and plain HTTP calls."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from asya.tasks.reporting.aws.gateway_client import address_of
from tests.cloud.browser import open_page

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.cloud.callers import ApiCaller

# The page posts each event with its time of arrival, and an event when the connection closes for good.
_SCRIPT = """
let opened = 0;
const source = new EventSource(URL_OF_STREAM);
source.onopen = () => { opened += 1; };
for (const name of ["status", "partial", "final"]) {
  source.addEventListener(name, (event) =>
    post({event: name, id: event.lastEventId, data: JSON.parse(event.data), at: Date.now() / 1000, opened}));
}
source.onerror = () => { if (source.readyState === EventSource.CLOSED) post({event: "closed", opened}); };
"""


def parse_events(text: str) -> list[dict[str, Any]]:
    """Parses the text of a stream into its events."""
    events: list[dict[str, Any]] = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "data" in fields:
            events.append({"event": fields["event"], "id": fields["id"], "data": json.loads(fields["data"])})
    return events


def curl(url: str, *options: str, last_event_id: str | None = None) -> tuple[int, list[dict[str, Any]]]:
    """Makes one request with curl; returns the status and the events of the response."""
    header = ["-H", f"Last-Event-ID: {last_event_id}"] if last_event_id is not None else []
    command = ["curl", "-sS", "--noproxy", "*", "--max-time", "60", "-w", "\n%{http_code}", *options, *header, url]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    body, _, status = output.rpartition("\n")
    return int(status), parse_events(body)


def signing_options(caller: ApiCaller) -> list[str]:
    """The options that make curl sign the request."""
    assert caller.credentials is not None
    user = f"{caller.credentials.access_key}:{caller.credentials.secret_key}"
    return ["--aws-sigv4", f"aws:amz:{caller.region}:execute-api", "--user", user]


def virtual_host_url(caller: ApiCaller) -> str:
    """The API under its own host name, as on AWS: curl and the server then sign the same path."""
    split = urlsplit(caller.url)
    return f"http://{split.path.split('/')[3]}.execute-api.localhost:{split.port}"


@dataclass
class StreamClient:
    """Follows a task with successive connections to its stream."""

    caller: ApiCaller
    task_id: str
    events: list[dict[str, Any]] = field(default_factory=list)
    connections: int = 0

    def connect(self, limit: int | None = None) -> bool:
        """Opens one connection and keeps up to `limit` events; returns whether the stream continues."""
        url = f"{self.caller.url}/api/v1/mesh/{self.task_id}/events"
        headers = self.caller.signed("GET", url, b"")
        headers |= {"last-event-id": self.events[-1]["id"]} if self.events else {}
        response = self.caller.pool.request("GET", address_of(url), headers=headers, redirect=False, timeout=60.0)
        self.connections += 1
        if response.status == 204:
            return False
        assert response.status == 200, response.data
        self.events += parse_events(response.data.decode())[:limit]
        return not self.events or self.events[-1]["event"] != "final"


def follow_in_browser(url: str, profile: Path) -> AbstractContextManager[list[dict[str, Any]]]:
    """Opens a browser page that follows a stream; yields the list of events that the page has posted."""
    return open_page(_SCRIPT.replace("URL_OF_STREAM", json.dumps(url)), profile)
