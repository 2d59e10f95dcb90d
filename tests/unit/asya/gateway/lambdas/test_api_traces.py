"""protocol §15: the gateway records the span of a submission."""

from dataclasses import replace

import pytest

from tests.doubles.gateway_functions import Gateway, recorded_event
from tests.doubles.gateway_functions import module_clients as _clients  # noqa: F401
from tests.doubles.span_log import SpanLog

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "b7ad6b7169203331"


def start_task(gateway: Gateway, log: SpanLog, **headers: str) -> str:
    """Start a task and return the `traceparent` of its first message."""
    event = recorded_event("start-task")
    event["headers"] = {name: value for name, value in event["headers"].items() if name != "traceparent"} | headers
    assert replace(gateway, traces=log.traces()).api(event)[0] == 201
    [message] = gateway.messages()
    return str(message["headers"]["traceparent"])


@pytest.mark.rule("15.spans")
def test_protocol_15_a_submission_is_the_first_span(gateway: Gateway) -> None:
    log = SpanLog()
    traceparent = start_task(gateway, log)
    (span,) = log.spans
    assert (str(span.context), span.parent_id) == (traceparent, None)
    assert (span.service, span.name) == ("x-gateway-api", "submit inspect-dataset")


def test_a_submission_continues_the_trace_of_its_caller(gateway: Gateway) -> None:
    log = SpanLog()
    start_task(gateway, log, traceparent=f"00-{TRACE}-{CALLER}-01")
    assert (log.spans[0].context.trace_id, log.spans[0].parent_id) == (TRACE, CALLER)


def test_a_caller_may_exclude_its_trace(gateway: Gateway) -> None:
    log = SpanLog()
    traceparent = start_task(gateway, log, traceparent=f"00-{TRACE}-{CALLER}-00")
    assert (traceparent[-2:], log.spans) == ("00", [])
