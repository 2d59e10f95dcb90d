"""protocol §3, `x-asya-gateway-url`: the header counts with http or https and an allowed host, else the configured URL."""

from typing import Any

import pytest

from asya.protocol.codec import decode
from asya.tasks.reporting.report_messages import allowed_hosts, report_url
from tests.doubles.envelopes import message

OWN = "https://own.example"
HOSTS = frozenset({"own.example", "other.example:8080"})


def chosen(header: Any) -> str | None:
    envelope = decode(message(headers={"x-asya-gateway-url": header}))
    return report_url(envelope, configured=OWN, allowed_hosts=HOSTS)


@pytest.mark.rule("3.gateway-url")
@pytest.mark.parametrize(
    ("header", "url"),
    [
        ("https://own.example", "https://own.example"),
        ("http://other.example:8080/base/", "http://other.example:8080/base"),
    ],
)
def test_allowed_hosts_are_taken(header: str, url: str) -> None:
    assert chosen(header) == url


@pytest.mark.rule("3.gateway-url")
@pytest.mark.parametrize(
    "header",
    [
        "https://evil.example",
        "https://own.example.evil.example",
        "https://own.example:444",
        "https://own.example@evil.example",
        "https://user@own.example",
        "https://evil.example#own.example",
        "https://evil.example\\@own.example",
        "https://evil.example/own.example",
        "//own.example",
        "own.example",
        "ftp://own.example",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://[::1",
        "http://169.254.169.254/latest/meta-data",
        "http://",
        "",
        5,
        None,
        ["https://own.example"],
    ],
)
def test_forged_headers_fall_back_to_the_configured_url(header: Any) -> None:
    assert chosen(header) == OWN


def test_the_url_is_rebuilt_from_its_checked_parts() -> None:
    """Parsing removes tabs and newlines; the HTTP client would interpret them differently."""
    assert chosen("https://other.exa\tmple:8080\n/x?y=1#z") == "https://other.example:8080/x"


@pytest.mark.rule("3.gateway-url")
@pytest.mark.parametrize("header", ["http://own.example", "https://own.example/x", "https://own.example/"])
def test_any_address_on_the_own_host_is_the_configured_gateway(header: str) -> None:
    assert chosen(header) == OWN


def test_without_a_header_and_without_a_gateway() -> None:
    envelope = decode(message())
    assert report_url(envelope, configured=OWN, allowed_hosts=HOSTS) == OWN
    assert report_url(envelope, configured=None, allowed_hosts=frozenset()) is None


def test_allowed_hosts_are_the_own_and_those_named() -> None:
    assert allowed_hosts("https://own.example/base", ["other.example"]) == {"own.example", "other.example"}
    assert allowed_hosts(None, []) == frozenset()
