"""A collector of traces: an HTTP server on the loopback interface that decodes OTLP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class CollectedSpan:
    """A span as it arrived."""

    service: str
    namespace: str
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    started_ns: int
    ended_ns: int
    failed: bool
    attributes: dict[str, str | int | float]


@dataclass
class Collector:
    """The spans that arrived, and the answer to further ones.

    Attributes:
        base_url: the address without the path for traces.
        status: the HTTP status of further answers.
        answers: clear it to delay answers until it is set.
    """

    base_url: str = ""
    spans: list[CollectedSpan] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    status: int = 200
    answers: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """The address for traces."""
        return f"{self.base_url}/v1/traces"


@contextmanager
def otlp_collector() -> Iterator[Collector]:
    """Run a collector."""
    collector = Collector()
    collector.answers.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.headers.append(dict(self.headers.items()))
            collector.answers.wait()
            if collector.status == 200:
                collector.spans += decode(body)
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Keep the output of the tests short."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.base_url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            collector.answers.set()
            server.shutdown()
            thread.join()


def decode(body: bytes) -> list[CollectedSpan]:
    """Decode a request in OTLP's binary form."""
    request = ExportTraceServiceRequest.FromString(body)
    spans: list[CollectedSpan] = []
    for group in request.resource_spans:
        resource = {each.key: each.value.string_value for each in group.resource.attributes}
        for span in (span for scope in group.scope_spans for span in scope.spans):
            attributes = {
                each.key: getattr(each.value, str(each.value.WhichOneof("value"))) for each in span.attributes
            }
            spans.append(
                CollectedSpan(
                    service=resource["service.name"],
                    namespace=resource["service.namespace"],
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    name=span.name,
                    started_ns=span.start_time_unix_nano,
                    ended_ns=span.end_time_unix_nano,
                    failed=span.status.code == span.status.STATUS_CODE_ERROR,
                    attributes=attributes,
                )
            )
    return spans
