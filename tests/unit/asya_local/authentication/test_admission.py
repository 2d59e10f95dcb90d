"""Decides which requests enter a local cloud."""

import posixpath
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya_local.authentication.admission import (
    LARGEST_API_BODY,
    LARGEST_BODY,
    SECRET_HEADER,
    Refusal,
    admit,
    authenticate,
    body_limit,
    opens_page,
    page_token,
    refuse_foreign,
)
from asya_local.authentication.signatures import HttpCall, Signature, read_signature
from tests.unit.asya_local.authentication.test_signatures import KEY, SECRET, sign

OWN = "5" * 64
HOST = "127.0.0.1:4566"
TOKEN = "5d1f0c3e-8f0b-4a1e-9d52-3f1b6c0a7e21"


def call(method: str = "GET", path: str = "/", query: str = "", **headers: str) -> HttpCall:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpCall(method, path, query, {"host": HOST} | names)


def code(call: HttpCall, *, is_api: bool = False) -> str:
    answer = admit(call, call.raw_path, OWN, is_api=is_api)
    return answer.code if isinstance(answer, Refusal) else answer.value


@pytest.mark.parametrize("host", [HOST, "127.0.0.1", "localhost:1", "LOCALHOST", "0a1b.execute-api.localhost:4566"])
def test_this_machine_is_the_host(host: str) -> None:
    assert refuse_foreign(call(host=host)) is None


@pytest.mark.parametrize(
    "host",
    ["", "example.com", "example.com:4566", "127.0.0.1.example.com", "localhost.example.com", "notlocalhost", "127.0.0.1:",
     "127.0.0.1:4566,example.com", "localhost\n", "0.0.0.0", "[::1]"],
)  # fmt: skip
def test_another_host_is_refused_before_anything_else(host: str) -> None:
    headers = {"host": host, SECRET_HEADER: OWN}
    assert code(HttpCall("GET", "/_local/health", "", headers)) == "AccessDenied"
    assert code(HttpCall("GET", "/", "", headers), is_api=True) == "AccessDenied"
    assert code(HttpCall("GET", "/", "", {SECRET_HEADER: OWN})) == "AccessDenied"


@pytest.mark.parametrize("origin", ["https://example.com", "null", "", f"http://{HOST}", "http://localhost:3000"])
def test_a_web_page_is_refused_except_at_an_api(origin: str) -> None:
    headers = {"origin": origin, SECRET_HEADER.replace("-", "_"): OWN}
    assert code(call(path="/_local/health", **headers)) == "AccessDenied"
    assert code(call("OPTIONS", **headers)) == "AccessDenied"
    assert code(call(path="/_aws/execute-api/0a1b/x", origin=origin), is_api=True) == "none"


@pytest.mark.parametrize(
    "path", ["/_ministack/reset", "/_localstack/health", "/_local/runs/0/kill", "/_aws/sqs/messages"]
)
def test_internal_paths_need_the_secret(path: str) -> None:
    for secret in ("", "4" * 64, OWN[:-1]):
        assert code(call(path=path, **{SECRET_HEADER: secret})) == "AccessDenied"
        assert code(call(path=path, **{SECRET_HEADER: secret}), is_api=True) == "AccessDenied"
    assert code(call(path=path)) == "AccessDenied"
    assert code(call(path=path, **{SECRET_HEADER: OWN})) == "secret"


def test_an_empty_secret_opens_nothing_by_a_missing_header() -> None:
    assert isinstance(admit(call(path="/_local/health"), "/_local/health", OWN), Refusal)


def test_custom_resources_answer_at_a_random_path() -> None:
    for kind in ("response", "signal"):
        assert code(call("PUT", f"/_ministack/cfn-{kind}/{TOKEN}")) == "none"
        assert code(call("GET", f"/_ministack/cfn-{kind}/{TOKEN}")) == "AccessDenied"


DETOURS = ["..", "%2e%2e", ".%2E", "%252e%252e", "..%2f", "%2f", "/", ".", "%5c", "..\\", "//", "", "reset", "5d1f"]


@given(
    start=st.sampled_from(
        ["/_ministack/cfn-response/", "/_ministack/cfn-signal/", "/_aws/execute-api/", "/", "//", "/a/"]
    ),
    middle=st.lists(st.sampled_from([*DETOURS, "_ministack", "_aws", "_local", "a", "5" * 36]), max_size=5),
    end=st.sampled_from(
        ["reset", "_ministack/reset", "%5fministack/reset", "_local/snapshot", "..%2f_ministack%2freset"]
    ),
    method=st.sampled_from(["PUT", "GET", "POST"]),
)
def test_no_detour_leads_to_an_internal_path(start: str, middle: list[str], end: str, method: str) -> None:
    """Whatever the reader behind the door makes of a path: decodes it again, or removes its dots and empty segments."""
    raw = start + "".join(f"{each}/" for each in middle) + end
    path = unquote(raw)
    answer = admit(HttpCall(method, raw, "", {"host": HOST}), path, OWN, is_api=path.startswith("/_aws/execute-api/"))
    readings = {path, unquote(path), posixpath.normpath(path), posixpath.normpath(unquote(path).replace("\\", "/"))}
    readings |= {f"/{each.lstrip('/')}" for each in readings}
    if any(each.startswith("/_") and not each.startswith("/_aws/execute-api/") for each in readings):
        assert isinstance(answer, Refusal), raw


@pytest.mark.parametrize(
    "path",
    ["/_ministack/cfn-response/../reset", "/_ministack/cfn-response/%2e%2e/reset", "/_ministack/cfn-response//reset",
     "/_ministack/cfn-signal/..%2freset", "/_ministack/cfn-response/", "/_ministack/cfn-response/5d1f/../../reset"],
)  # fmt: skip
def test_an_answer_has_a_token_and_nothing_else(path: str) -> None:
    assert isinstance(admit(HttpCall("PUT", path, "", {"host": HOST}), unquote(path), OWN), Refusal)


@pytest.mark.parametrize("path", ["/bucket/a..b/c", "/bucket/a//b", "/bucket/x/../y", "/bucket/%2e%2e", "/bucket/_a/b"])
def test_keys_of_objects_may_have_dots_and_empty_segments(path: str) -> None:
    assert code(sign("s3", "GET", path)) == "signature"


def test_a_body_of_nobody_known_has_a_limit() -> None:
    """The headers of S3 say what of a body is signed; those of other services do not."""
    s3, sqs = sign("s3", "PUT", "/bucket/a", x_amz_content_sha256="UNSIGNED-PAYLOAD"), sign()
    assert body_limit(s3, read_signature(s3), is_api=False) is None
    assert body_limit(sqs, read_signature(sqs), is_api=False) == LARGEST_BODY
    assert body_limit(sqs, read_signature(sqs), is_api=True) == LARGEST_API_BODY
    assert body_limit(call(), None, is_api=True) == LARGEST_API_BODY
    assert body_limit(call("PUT"), None, is_api=False) == LARGEST_API_BODY


def test_headers_prove_what_they_can_before_the_body_is_read() -> None:
    now = datetime.now(UTC)
    s3 = sign("s3", "PUT", "/bucket/a", b"body")
    assert isinstance(authenticate(s3, None, lambda _: SECRET, now), Signature)
    assert isinstance(authenticate(s3, b"body", lambda _: SECRET, now), Signature)
    for refused in (
        authenticate(s3, None, lambda _: "wrong", now),
        authenticate(s3, b"other", lambda _: SECRET, now),
        authenticate(sign(), None, lambda _: Refusal("UnrecognizedClientException", "unknown"), now),
        authenticate(sign(), None, lambda _: SECRET, now + timedelta(hours=1)),
    ):
        assert isinstance(refused, Refusal)


def test_services_take_signed_requests_and_apis_decide_for_themselves() -> None:
    assert code(call()) == "MissingAuthenticationToken"
    assert code(call(authorization="Bearer x")) == "MissingAuthenticationToken"
    assert code(call(authorization="AWS test:x")) == "IncompleteSignature"
    assert code(call(authorization="AWS test:x"), is_api=True) == "IncompleteSignature"
    assert code(call(query="X-Amz-Credential=test/1"), is_api=True) == "IncompleteSignature"
    assert code(call(authorization="Bearer x"), is_api=True) == "none"
    assert code(call(), is_api=True) == "none"
    assert code(sign()) == "signature"
    assert code(sign(), is_api=True) == "signature"


def test_the_holder_of_a_key_is_the_caller() -> None:
    signature = authenticate(sign(body=b"x"), b"x", lambda _: SECRET, datetime.now(UTC))
    assert isinstance(signature, Signature)
    assert signature.access_key == KEY


def test_others_are_refused() -> None:
    now = datetime.now(UTC)
    unknown = Refusal("UnrecognizedClientException", "unknown")
    assert authenticate(sign(), b"", lambda _: unknown, now) == unknown
    for refused, code_ in (
        (authenticate(sign(), b"", lambda _: "wrong", now), "SignatureDoesNotMatch"),
        (authenticate(sign(), b"more", lambda _: SECRET, now), "SignatureDoesNotMatch"),
        (authenticate(call(), b"", lambda _: SECRET, now), "MissingAuthenticationToken"),
        (authenticate(call(authorization="AWS x:y"), b"", lambda _: SECRET, now), "IncompleteSignature"),
    ):
        assert isinstance(refused, Refusal)
        assert refused.code == code_


def test_a_token_opens_one_page() -> None:
    page = "/_local/runs/0"
    query = f"token={page_token(OWN, page)}"
    assert opens_page(call(path=page, query=query), OWN)
    assert not opens_page(call("POST", path=page, query=query), OWN)
    assert not opens_page(call(path="/_local/runs/1", query=query), OWN)
    assert not opens_page(call(path=page, query=query), "4" * 64)
    assert not opens_page(call(path=page), OWN)
