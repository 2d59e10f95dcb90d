"""Clients that follow streams: curl, a browser page, and plain HTTP calls."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from asya.reporting.aws.gateway_client import address_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cloud.callers import ApiCaller

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# The page posts each event with its time of arrival, and an event when the connection closes for good.
_PAGE = """<!doctype html><title>Following</title><script>
let posting = Promise.resolve();
const post = (event) => {
  posting = posting.then(() => fetch("/events", {method: "POST", body: JSON.stringify(event)}));
};
let opened = 0;
const source = new EventSource(URL_OF_STREAM);
source.onopen = () => { opened += 1; };
for (const name of ["status", "partial", "final"]) {
  source.addEventListener(name, (event) =>
    post({event: name, id: event.lastEventId, data: JSON.parse(event.data), at: Date.now() / 1000, opened}));
}
source.onerror = () => { if (source.readyState === EventSource.CLOSED) post({event: "closed", opened}); };
</script>"""


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


@contextmanager
def follow_in_browser(url: str, profile: Path) -> Iterator[list[dict[str, Any]]]:
    """Opens a browser page that follows a stream; yields the list of events that the page has posted."""
    assert CHROMIUM is not None
    events: list[dict[str, Any]] = []
    html = _PAGE.replace("URL_OF_STREAM", json.dumps(url)).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._respond(html if self.path == "/" else b"", "text/html; charset=utf-8")

        def do_POST(self) -> None:
            events.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self._respond(b"", "text/plain")

        def _respond(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Writes no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--no-proxy-server"),
        *(f"--user-data-dir={profile}", "--remote-debugging-port=0", f"http://127.0.0.1:{server.server_port}/"),
    ]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield events
    finally:
        browser.terminate()
        browser.wait(timeout=30)
        server.shutdown()
        server.server_close()
