"""A client of Agent2Agent that stores the notifications it receives."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass
class Client:
    """A server that stores the notifications it receives."""

    url: str = ""
    status: int = 200
    notifications: list[tuple[Json, Json]] = field(default_factory=list)


@contextmanager
def client(tls: ssl.SSLContext | None = None) -> Iterator[Client]:
    receiver = Client()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.notifications.append((dict(self.headers.items()), json.loads(body)))
            self.send_response(receiver.status)
            self.send_header("location", "/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver.url = f"http://127.0.0.1:{server.server_port}/notify?of=me"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
