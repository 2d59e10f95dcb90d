"""A headless Chromium that opens a page of its own server. The page posts events back to that server."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NO_CHROMIUM = "there is no chromium here (Debian, Ubuntu: apt-get install chromium)"

# post(event) tells the test about an event; events arrive in order.
_PAGE = """<!doctype html><title>Test</title><script>
let posting = Promise.resolve();
const post = (event) => {
  posting = posting.then(() => fetch("/events", {method: "POST", body: JSON.stringify(event)}));
};
SCRIPT
</script>"""


@contextmanager
def open_page(script: str, profile: Path) -> Iterator[list[dict[str, Any]]]:
    """Opens a page that runs a script; yields the list of events that the script has posted."""
    assert CHROMIUM is not None
    events: list[dict[str, Any]] = []
    html = _PAGE.replace("SCRIPT", script).encode()

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
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
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
