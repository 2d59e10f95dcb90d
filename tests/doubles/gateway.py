"""The gateway: its call for reports behind a real socket, and the messages of the report queues."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from asya.protocol.events import EventResult, EventResults, PartialEvent, TaskEvent


@dataclass
class FakeGateway:
    """Records requests and returns configured responses.

    Attributes:
        events: the received reports in order, also the refused ones.
        partials: the received partials in order, also the refused ones.
        messages: queue and number of reports of each message on a report queue.
        status: the HTTP status of each response.
        item_status: the status of single events, by (id, status); 204 by default.
        watch: called with the path and body of each request before the response.
        silent: whether requests get no response until the test ends.
        answer: the body of each response; None for a valid one.
        headers: the headers of the last request.
        calls: the number of requests.
        over: set at the end of the test.
    """

    url: str = ""
    events: list[TaskEvent] = field(default_factory=list)
    partials: list[PartialEvent] = field(default_factory=list)
    messages: list[tuple[str, int]] = field(default_factory=list)
    status: int = 200
    item_status: dict[tuple[str, str], int] = field(default_factory=dict)
    watch: Callable[[str, bytes], None] | None = None
    silent: bool = False
    answer: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    calls: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def reported(self, envelope_id: str) -> list[str]:
        """Return the reported statuses of an envelope."""
        return [event.status for event in self.events if event.id == envelope_id]

    def respond(self, path: str, body: bytes) -> bytes:
        """Record a request and return the body of its response."""
        self.calls += 1
        if self.watch is not None:
            self.watch(path, body)
        events = self._record(body)
        results = (
            EventResult(id=event.id, status=self.item_status.get((event.id, getattr(event, "status", "fly")), 204))
            for event in events
        )
        return msgspec.json.encode(EventResults(items=tuple(results)))

    def take(self, queue: str, body: str) -> bool:
        """Record the reports of a message on a report queue; False if SQS does not accept it, as for `item_status`."""
        if self.watch is not None:
            self.watch(queue, body.encode())
        events = self._record(body.encode())
        self.messages.append((queue, len(events)))
        statuses = (self.item_status.get((event.id, getattr(event, "status", "fly")), 204) for event in events)
        return all(status in (204, 400, 404) for status in statuses)

    def _record(self, body: bytes) -> list[TaskEvent | PartialEvent]:
        events = [_event(raw) for raw in msgspec.json.decode(body, type=list[msgspec.Raw])]
        self.events += [event for event in events if isinstance(event, TaskEvent)]
        self.partials += [event for event in events if isinstance(event, PartialEvent)]
        return events


def _event(raw: msgspec.Raw) -> TaskEvent | PartialEvent:
    is_fly = msgspec.json.decode(raw).get("type") == "fly"
    return msgspec.json.decode(raw, type=PartialEvent) if is_fly else msgspec.json.decode(raw, type=TaskEvent)


@contextmanager
def running_gateway() -> Iterator[FakeGateway]:
    """Start a gateway on a free loopback port."""
    gateway = FakeGateway()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            gateway.headers = {name.lower(): value for name, value in self.headers.items()}
            if gateway.silent:
                gateway.over.wait(30)
                return
            answer = gateway.respond(self.path, body)
            if gateway.status != 200:
                answer = b'{"error": {"code": "on_demand"}}'
            answer = answer if gateway.answer is None else gateway.answer
            self.send_response(gateway.status)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    gateway.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield gateway
    finally:
        gateway.over.set()
        server.shutdown()
        server.server_close()
