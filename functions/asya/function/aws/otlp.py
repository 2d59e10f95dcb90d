"""Exports spans over OTLP/HTTP with OpenTelemetry's SDK: to a collector, or signed to X-Ray (`protocol §15`).

Only meshes with `telemetry` have the SDK in their layer, and only their functions import this module.
"""

import re
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from asya.function.aws.telemetry import ExportError
from asya.function.spans import Span
from asya.protocol.tracing import TraceContext

# Less than the SDK's first pause between two attempts, so it makes one attempt.
TIMEOUT_SECONDS = 0.5
_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)
_XRAY = re.compile(r"https://xray\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?/")


class OtlpExport:
    """Sends spans to one endpoint. Each actor is a service of its own in the traces.

    A request runs in a thread of its own: the timeout of a request bounds neither the resolution of a name, nor an answer
    that drips.
    """

    def __init__(self, exporter: SpanExporter, namespace: str) -> None:
        self._thread: threading.Thread | None = None
        self._exporter = exporter
        self._namespace = namespace
        self._ids = _EnvelopeIds()
        self._finished = _Finished()
        self._provider = cache(self._new_provider)

    def __call__(self, spans: Sequence[Span]) -> None:
        """Send spans.

        Raises:
            ExportError: the endpoint did not accept them in half a second, or an earlier request goes on.
        """
        if self._thread is not None and self._thread.is_alive():
            raise ExportError("the endpoint of `telemetry` has not answered an earlier request")
        results: list[SpanExportResult] = []
        self._thread = threading.Thread(target=lambda: results.append(self._send(spans)), name="otlp", daemon=True)
        self._thread.start()
        self._thread.join(TIMEOUT_SECONDS)
        if self._thread.is_alive():
            raise ExportError(f"the endpoint of `telemetry` did not answer in {TIMEOUT_SECONDS} s")
        if results != [SpanExportResult.SUCCESS]:
            raise ExportError("the endpoint of `telemetry` did not accept them; the log of the exporter says why")

    def _send(self, spans: Sequence[Span]) -> SpanExportResult:
        for span in spans:
            self._record(span)
        return self._exporter.export(self._finished.take())

    def _record(self, span: Span) -> None:
        """Replay a span. The SDK asks for its ids, because the envelope has already carried them on."""
        self._ids.context = span.context
        sdk_span = (
            self._provider(span.service)
            .get_tracer("asya")
            .start_span(
                span.name,
                context=_parent(span),
                kind=SpanKind.PRODUCER if span.sends_only else SpanKind.CONSUMER,
                attributes={**span.attributes, **({"error.type": span.error} if span.error else {})},
                start_time=_nanoseconds(span.started_at),
            )
        )
        sdk_span.set_status(Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.OK))
        sdk_span.end(_nanoseconds(span.ended_at))

    def _new_provider(self, service: str) -> TracerProvider:
        resource = Resource.create({"service.name": service, "service.namespace": self._namespace})
        provider = TracerProvider(ALWAYS_ON, resource, shutdown_on_exit=False, id_generator=self._ids)
        provider.add_span_processor(self._finished)
        return provider


def otlp_export(endpoint: str, namespace: str, credentials: Callable[[], Credentials | None]) -> OtlpExport:
    """Build the export to an endpoint.

    Args:
        endpoint: the URL for traces, such as `http://localhost:4318/v1/traces`.
        namespace: the namespace of the mesh.
        credentials: the credentials of the function, for X-Ray.
    """
    session = requests.Session()
    if match := _XRAY.match(endpoint):
        session.auth = _Signature(credentials, match[1])
    return OtlpExport(OTLPSpanExporter(endpoint, timeout=TIMEOUT_SECONDS, session=session), namespace)


class _EnvelopeIds(IdGenerator):
    """The ids of the span that is being recorded."""

    context = TraceContext("", "", "")

    def generate_span_id(self) -> int:
        return int(self.context.span_id, 16)

    def generate_trace_id(self) -> int:
        return int(self.context.trace_id, 16)


class _Finished(SpanProcessor):
    """Collects finished spans."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self._spans.append(span)

    def take(self) -> list[ReadableSpan]:
        spans, self._spans = self._spans, []
        return spans


class _Signature(requests.auth.AuthBase):
    """Signs requests to X-Ray (Signature Version 4)."""

    def __init__(self, credentials: Callable[[], Credentials | None], region: str) -> None:
        self._credentials = credentials
        self._region = region

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        unsigned = AWSRequest(
            request.method, request.url, {"Content-Type": request.headers["Content-Type"]}, request.body
        )
        credentials = self._credentials()
        if credentials is None:
            raise ExportError("the function has no credentials to sign the request to X-Ray")
        SigV4Auth(credentials, "xray", self._region).add_auth(unsigned)
        request.headers.update(unsigned.headers.items())
        return request


def _parent(span: Span) -> Context:
    """The context of the parent; an empty one for the first span of a trace."""
    if span.parent_id is None:
        return Context()
    parent = SpanContext(
        int(span.context.trace_id, 16),
        int(span.parent_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return set_span_in_context(NonRecordingSpan(parent), Context())


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND * 1000
