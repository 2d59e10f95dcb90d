"""Spans leave over OTLP, to a collector on this machine."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from botocore.credentials import Credentials

from asya.function.aws.otlp import otlp_export
from asya.function.aws.telemetry import ExportError
from asya.function.spans import Span
from asya.protocol.tracing import TraceContext
from tests.doubles.otlp_collector import Collector, decode, otlp_collector

TRACE, PARENT, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "b7ad6b7169203331", "00f067aa0ba902b7"
STARTED = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
CREDENTIALS = Credentials("AKIDEXAMPLE", "secret", "token")


def span(name: str = "process score", **changes: Any) -> Span:
    values: dict[str, Any] = {
        "context": TraceContext(TRACE, SPAN, "01"),
        "parent_id": PARENT,
        "service": "score",
        "name": name,
        "started_at": STARTED,
        "ended_at": STARTED + timedelta(milliseconds=12.5),
        "attributes": {"asya.envelope_id": "e-1", "asya.attempt": 2},
    }
    return Span(**values | changes)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with otlp_collector() as running:
        yield running


@pytest.mark.rule("15.spans")
def test_a_span_arrives_with_its_own_ids_times_and_attributes(collector: Collector) -> None:
    otlp_export(collector.url, "shop", lambda: CREDENTIALS)([span()])
    (arrived,) = collector.spans
    assert (arrived.trace_id, arrived.span_id, arrived.parent_id) == (TRACE, SPAN, PARENT)
    assert (arrived.service, arrived.namespace, arrived.name) == ("score", "shop", "process score")
    assert arrived.started_ns == int(STARTED.timestamp()) * 10**9 + 678_901_000
    assert arrived.ended_ns - arrived.started_ns == 12_500_000
    assert (arrived.failed, arrived.attributes) == (False, {"asya.envelope_id": "e-1", "asya.attempt": 2})
    assert "Authorization" not in collector.headers[0]


def test_the_first_span_of_a_trace_has_no_parent(collector: Collector) -> None:
    otlp_export(collector.url, "shop", lambda: CREDENTIALS)([span(parent_id=None)])
    assert (collector.spans[0].trace_id, collector.spans[0].parent_id) == (TRACE, "")


def test_an_error_marks_its_span(collector: Collector) -> None:
    otlp_export(collector.url, "shop", lambda: CREDENTIALS)([span(error="ValueError")])
    assert collector.spans[0].failed
    assert collector.spans[0].attributes["error.type"] == "ValueError"


def test_the_spans_of_several_actors_leave_in_one_request(collector: Collector) -> None:
    export = otlp_export(collector.url, "shop", lambda: CREDENTIALS)
    export([span(), span(service="crunch"), span("run crunch", service="crunch")])
    assert [
        (each.service, each.name) for each in sorted(collector.spans, key=lambda each: (each.service, each.name))
    ] == [
        ("crunch", "process score"),
        ("crunch", "run crunch"),
        ("score", "process score"),
    ]
    assert len(collector.headers) == 1


@pytest.mark.parametrize("status", [400, 500, 503])
def test_a_refusal_is_an_error_and_its_spans_do_not_return(collector: Collector, status: int) -> None:
    export = otlp_export(collector.url, "shop", lambda: CREDENTIALS)
    collector.status = status
    with pytest.raises(ExportError, match="did not accept"):
        export([span("first")])
    collector.status = 200
    export([span("second")])
    assert [each.name for each in collector.spans] == ["second"]


@pytest.mark.rule("15.lost-spans")
def test_protocol_15_no_invocation_waits_for_a_slow_collector(collector: Collector) -> None:
    export = otlp_export(collector.url, "shop", lambda: CREDENTIALS)
    collector.answers.clear()
    with pytest.raises(ExportError, match=r"did not answer in 0\.5 s|did not accept"):
        export([span("first")])
    collector.answers.set()


def test_a_request_that_goes_on_is_not_joined_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolution of a name has no timeout, and an answer may drip."""
    resolved, sent = threading.Event(), list[object]()

    def send(_: object, request: object, **__: object) -> requests.Response:
        resolved.wait()
        sent.append(request)
        response = requests.Response()
        response.status_code = 200
        return response

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send)
    export = otlp_export("http://collector.example:4318/v1/traces", "shop", lambda: CREDENTIALS)
    with pytest.raises(ExportError, match="did not answer"):
        export([span("first")])
    with pytest.raises(ExportError, match="has not answered an earlier request"):
        export([span("second")])
    resolved.set()
    for thread in threading.enumerate():
        if thread.daemon and thread is not threading.current_thread() and "otlp" in thread.name:
            thread.join()
    export([span("third")])
    assert len(sent) == 2


def test_nobody_at_the_endpoint_is_an_error() -> None:
    with otlp_collector() as collector:
        url = collector.url
    with pytest.raises(ExportError):
        otlp_export(url, "shop", lambda: CREDENTIALS)([span()])


def test_requests_to_x_ray_are_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    requests_sent: list[requests.PreparedRequest] = []

    def send(_: object, request: requests.PreparedRequest, **__: object) -> requests.Response:
        requests_sent.append(request)
        response = requests.Response()
        response.status_code = 200
        return response

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send)
    otlp_export("https://xray.eu-central-1.amazonaws.com/v1/traces", "shop", lambda: CREDENTIALS)([span()])
    (request,) = requests_sent
    assert "/eu-central-1/xray/aws4_request" in request.headers["Authorization"]
    assert request.headers["X-Amz-Security-Token"] == "token"
    assert isinstance(request.body, bytes)
    assert [each.span_id for each in decode(request.body)] == [SPAN]
