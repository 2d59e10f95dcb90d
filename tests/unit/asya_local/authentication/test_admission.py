"""Decides which requests enter a local cloud."""

from datetime import UTC, datetime

import pytest

from asya_local.authentication.admission import (
    SECRET_HEADER,
    Refusal,
    admit,
    authenticate,
    opens_page,
    page_token,
    refuse_foreign,
)
from asya_local.authentication.signatures import HttpCall, Signature
from tests.unit.asya_local.authentication.test_signatures import KEY, SECRET, sign

OWN = "5" * 64
HOST = "127.0.0.1:4566"


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
    assert code(call("PUT", "/_ministack/cfn-response/5d1f")) == "none"
    assert code(call("GET", "/_ministack/cfn-response/5d1f")) == "AccessDenied"


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
