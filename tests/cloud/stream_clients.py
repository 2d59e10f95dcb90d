"""Those who follow tasks: a loop of curl, a page in a browser."""

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

# As a page would: it tells what it sees as it sees it, with the time, and what became of the connection in the end.
_PAGE = """<!doctype html><title>Following</title><script>
let telling = Promise.resolve();
const tell = (what) => {
  telling = telling.then(() => fetch("/seen", {method: "POST", body: JSON.stringify(what)}));
};
let opened = 0;
const source = new EventSource(URL_OF_STREAM);
source.onopen = () => { opened += 1; };
for (const name of ["status", "partial", "final"]) {
  source.addEventListener(name, (event) =>
    tell({event: name, id: event.lastEventId, data: JSON.parse(event.data), at: Date.now() / 1000, opened}));
}
source.onerror = () => { if (source.readyState === EventSource.CLOSED) tell({event: "closed", opened}); };
</script>"""


def parse_events(text: str) -> list[dict[str, Any]]:
    """The events of a stream's text."""
    found: list[dict[str, Any]] = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "data" in fields:
            found.append({"event": fields["event"], "id": fields["id"], "data": json.loads(fields["data"])})
    return found


def curl(url: str, *options: str, last_event_id: str | None = None) -> tuple[int, list[dict[str, Any]]]:
    """One round of the loop: the status, and the events of the answer."""
    header = ["-H", f"Last-Event-ID: {last_event_id}"] if last_event_id is not None else []
    command = ["curl", "-sS", "--noproxy", "*", "--max-time", "60", "-w", "\n%{http_code}", *options, *header, url]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    body, _, status = answer.rpartition("\n")
    return int(status), parse_events(body)


def signing_options(caller: ApiCaller) -> list[str]:
    """What makes curl sign."""
    assert caller.credentials is not None
    who = f"{caller.credentials.access_key}:{caller.credentials.secret_key}"
    return ["--aws-sigv4", f"aws:amz:{caller.region}:execute-api", "--user", who]


def virtual_host_url(caller: ApiCaller) -> str:
    """The API as AWS has it, where curl and whoever checks the signature have one idea of the path."""
    split = urlsplit(caller.url)
    return f"http://{split.path.split('/')[3]}.execute-api.localhost:{split.port}"


@dataclass
class StreamClient:
    """Follows a task by the API's own calls, connection by connection."""

    caller: ApiCaller
    task_id: str
    events: list[dict[str, Any]] = field(default_factory=list)
    connections: int = 0

    def connect(self, limit: int | None = None) -> bool:
        """One connection, of which no more than so many events arrive; whether there is more to come."""
        url = f"{self.caller.url}/api/v1/mesh/{self.task_id}/events"
        headers = self.caller.signed("GET", url, b"")
        headers |= {"last-event-id": self.events[-1]["id"]} if self.events else {}
        answer = self.caller.pool.request("GET", address_of(url), headers=headers, redirect=False, timeout=60.0)
        self.connections += 1
        if answer.status == 204:
            return False
        assert answer.status == 200, answer.data
        self.events += parse_events(answer.data.decode())[:limit]
        return not self.events or self.events[-1]["event"] != "final"


@contextmanager
def follow_in_browser(url: str, profile: Path) -> Iterator[list[dict[str, Any]]]:
    """A browser on a page that follows a stream; what the page has told so far."""
    assert CHROMIUM is not None
    told: list[dict[str, Any]] = []
    html = _PAGE.replace("URL_OF_STREAM", json.dumps(url)).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(html if self.path == "/" else b"", "text/html; charset=utf-8")

        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self._answer(b"", "text/plain")

        def _answer(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--no-proxy-server"),
        *(f"--user-data-dir={profile}", "--remote-debugging-port=0", f"http://127.0.0.1:{server.server_port}/"),
    ]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield told
    finally:
        browser.terminate()
        browser.wait(timeout=30)
        server.shutdown()
        server.server_close()
