"""The cost of the trace of one hop, with `telemetry`: alone in its invocation, and in a batch of ten.

The collector is a process of its own, on the loopback interface. It answers at once.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from asya.function.aws.otlp import otlp_export
from asya.function.spans import Span
from asya.protocol.tracing import TraceContext
from bench.side_by_side import Measurement, measure

if TYPE_CHECKING:
    from collections.abc import Iterator

ALONE, BATCH = "a span alone", "a span in a batch of ten"
BATCH_SIZE = 10
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_COLLECTOR = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
print(server.server_port, flush=True)
server.serve_forever()
"""


def run() -> list[tuple[str, Measurement, float]]:
    """Measure both; return name, measurement of one span and ratio to the span alone."""
    with _collector() as url:
        export = otlp_export(url, "bench", lambda: None)
        measurements = measure(
            {ALONE: partial(export, [_span(0)]), BATCH: partial(export, list(map(_span, range(10))))}
        )
    alone = measurements[ALONE]
    each = Measurement(tuple(seconds / BATCH_SIZE for seconds in measurements[BATCH].turns))
    return [(ALONE, alone, 1.0), (BATCH, each, each.ratio(alone))]


@contextmanager
def _collector() -> Iterator[str]:
    with subprocess.Popen([sys.executable, "-c", _COLLECTOR], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1/traces"
        finally:
            process.kill()


def _span(number: int) -> Span:
    return Span(
        context=TraceContext(f"{number + 1:032x}", f"{number + 1:016x}", "01"),
        parent_id="b7ad6b7169203331",
        service="infer",
        name="process infer",
        started_at=NOW,
        ended_at=NOW + timedelta(milliseconds=3),
        attributes={"messaging.system": "aws_sqs", "asya.envelope_id": str(number), "asya.attempt": 1},
    )
