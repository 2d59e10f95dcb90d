"""The calls that the page may make."""

from __future__ import annotations

import pytest

from asya.gateway.call_table import CALLS as GATEWAY_CALLS
from asya_cli.console.calls import CALLS, is_allowed


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/mesh"),
        ("GET", "/api/v1/mesh/order-1"),
        ("GET", "/api/v1/mesh/a%2Fb%20c"),
        ("GET", "/api/v1/mesh/order-1/payloads/0"),
        ("DELETE", "/api/v1/mesh/order-1"),
        ("POST", "/api/v1/mesh/order-1/replay"),
        ("GET", "/api/v1/operations/runs/r-1/logs"),
    ],
)
def test_calls_of_the_page_are_allowed(method: str, path: str) -> None:
    assert is_allowed(method, path)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/mesh"),
        ("POST", "/api/v1/mesh/events"),
        ("POST", "/api/v1/mesh/order-1/events"),
        ("POST", "/api/v1/mesh/order-1/stream-token"),
        ("POST", "/tools/call"),
        ("PUT", "/api/v1/mesh/order-1"),
        ("OPTIONS", "/api/v1/mesh"),
        ("GET", "/api/v1/mesh/"),
        ("GET", "/api/v1/mesh/a/b/c"),
        ("GET", "/api/v1/mesh/../../tools"),
        ("GET", "/api/v1/mesh/%2e%2e"),
        ("GET", "/api/v1/mesh/%2E./timeline"),
        ("GET", "//example.org/api/v1/mesh"),
        ("GET", "/api/v1/mesh/a\r\nx-header: 1"),
        ("GET", "/api/v1/mesh/%zz"),
        ("GET", "/api/v1/mesh/a?b"),
        ("GET", "@example.org/api/v1/mesh"),
    ],
)
def test_other_calls_are_not(method: str, path: str) -> None:
    assert not is_allowed(method, path)


def test_the_page_cannot_report_or_start_tasks() -> None:
    changing = {(method, path) for method, path in CALLS if method != "GET"}
    assert changing == {
        ("DELETE", "/api/v1/mesh/{id}"),
        ("POST", "/api/v1/mesh/{id}/resume"),
        ("POST", "/api/v1/mesh/{id}/replay"),
        ("POST", "/api/v1/mesh/{id}/dismiss"),
    }


def test_every_call_is_one_of_the_gateway() -> None:
    assert set(CALLS) <= {(call.method, call.path) for call in GATEWAY_CALLS}
