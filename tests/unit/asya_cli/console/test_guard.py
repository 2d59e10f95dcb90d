"""Who may call the console: its own page with the secret, and nobody else on the machine or in the browser."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from asya_cli.console.guard import PROTECTION, Guard

GUARD = Guard(4711, "s3cret")
HOST = ("host", "127.0.0.1:4711")
ORIGIN = ("origin", "http://127.0.0.1:4711")
SECRET = ("x-asya-console-secret", "s3cret")


def headers(*pairs: tuple[str, str]) -> Headers:
    return Headers(raw=[(name.encode(), value.encode("latin-1")) for name, value in pairs])


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [("host", "127.0.0.1")],
        [("host", "localhost:4711")],
        [("host", "rebound.example:4711")],
        [("host", "127.0.0.1:4712")],
        [HOST, ("host", "rebound.example")],
    ],
    ids=str,
)
def test_another_host_is_refused(hosts: list[tuple[str, str]]) -> None:
    refusal = GUARD.refuse_address(headers(*hosts))
    assert refusal is not None
    assert (refusal.status, refusal.code) == (421, "wrong_host")


def test_its_own_host_is_answered() -> None:
    assert GUARD.refuse_address(headers(HOST)) is None


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("POST", [SECRET]),
        ("DELETE", [SECRET]),
        ("GET", [SECRET, ("origin", "https://stranger.example")]),
        ("GET", [SECRET, ("origin", "null")]),
        ("GET", [SECRET, ("origin", "http://127.0.0.1:4712")]),
        ("POST", [SECRET, ORIGIN, ("origin", "https://stranger.example")]),
        ("GET", [SECRET, ("sec-fetch-site", "cross-site")]),
        ("GET", [SECRET, ("sec-fetch-site", "same-site")]),
        ("GET", [SECRET, ("sec-fetch-site", "none")]),
    ],
    ids=str,
)
def test_a_call_of_another_page_is_refused(method: str, given: list[tuple[str, str]]) -> None:
    refusal = GUARD.refuse_call(method, headers(*given))
    assert refusal is not None
    assert (refusal.status, refusal.code) == (403, "wrong_origin")


@pytest.mark.parametrize(
    "secrets", [[], [""], ["s3cre"], ["s3cret "], ["S3CRET"], ["s3cret", "s3cret"], ["ü"]], ids=str
)
def test_a_call_without_the_secret_is_refused(secrets: list[str]) -> None:
    refusal = GUARD.refuse_call("GET", headers(ORIGIN, *((SECRET[0], secret) for secret in secrets)))
    assert refusal is not None
    assert (refusal.status, refusal.code) == (403, "wrong_secret")
    assert "s3cret" not in refusal.message


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_call_of_the_page_is_answered(method: str) -> None:
    assert GUARD.refuse_call(method, headers(ORIGIN, SECRET, ("sec-fetch-site", "same-origin"))) is None


def test_a_call_that_reads_needs_no_origin() -> None:
    """Browsers send none with a GET to the page's own server."""
    assert GUARD.refuse_call("GET", headers(SECRET)) is None


def test_the_policy_allows_nothing_but_files_and_calls_of_this_server() -> None:
    policy = dict(rule.split(" ", 1) for rule in PROTECTION["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert {value for name, value in policy.items() if value != "'none'"} == {"'self'"}
    assert PROTECTION["x-content-type-options"] == "nosniff"
    assert PROTECTION["cache-control"] == "no-store"


def test_the_secret_is_in_no_text_of_the_guard() -> None:
    assert "s3cret" not in repr(GUARD)
