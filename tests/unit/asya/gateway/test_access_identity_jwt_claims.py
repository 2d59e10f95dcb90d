"""protocol §13: callers with a token (JWT), as API Gateway passes it."""

import json
from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.gateway.access import Authorizer, Iam, IamIdentity, Jwt, TokenIdentity, identity_of
from asya.gateway.call_table import calls_of
from asya.gateway.routes import tools
from asya.protocol.mesh_table import Gateway as GatewayTable
from asya.protocol.mesh_table import Tool
from tests.doubles.gateway_functions import (
    ALICE,
    ISSUER,
    JWT_HOST,
    MESH,
    Gateway,
    read_task_event,
    recorded_event,
    route_event,
    signed_by,
    with_token,
)

SIGNED_HOST = "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com"


@pytest.fixture(autouse=True)
def with_operators(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin", "groups=mesh operators"))


def started(gateway: Gateway, event: dict[str, Any]) -> str:
    status, content = gateway.api(event)
    assert status == 201, content
    return str(content["id"])


def start_task() -> dict[str, Any]:
    event = recorded_event("start-task")
    return event | {"headers": {name: text for name, text in event["headers"].items() if name != "idempotency-key"}}


def test_the_recorded_event_names_its_caller(gateway: Gateway) -> None:
    task_id = started(gateway, recorded_event("start-task-with-token"))
    shown = gateway.api(with_token(read_task_event(task_id), "00u7q2example"))
    assert (shown[0], shown[1]["owner"]) == (200, f"jwt:00u7q2example#{ISSUER}")


@pytest.mark.rule("13.jwt.owner")
def test_a_token_and_a_signature_are_two_callers(gateway: Gateway) -> None:
    by_token = started(gateway, with_token(start_task(), "AIDAALICE"))
    by_key = started(gateway, signed_by(start_task(), ALICE))
    assert gateway.api(signed_by(read_task_event(by_token), ALICE))[0] == 404
    assert gateway.api(with_token(read_task_event(by_key), "AIDAALICE"))[0] == 404
    assert gateway.api(with_token(read_task_event(by_token), "AIDAALICE", issuer="https://other.example"))[0] == 404
    assert gateway.api(with_token(read_task_event(by_token), "AIDAALICE"))[0] == 200
    listed = gateway.api(with_token(route_event("GET /api/v1/mesh"), "AIDAALICE"))[1]["items"]
    assert [each["id"] for each in listed] == [by_token]


@pytest.mark.rule("13.jwt.operators")
@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"groups": ["people", "mesh operators"]}, 200),
        ({"groups": "mesh operators"}, 200),
        ({"groups": ["people"]}, 404),
        # As text the next ones are `[people mesh operators]`, as the first one is.
        ({"groups": ["people mesh", "operators"]}, 404),
        ({"groups": "[people mesh operators]"}, 404),
        ({"groups": {"mesh operators": "mesh operators"}}, 404),
        ({}, 404),
    ],
)
def test_operators_by_claim_see_every_task(gateway: Gateway, claims: dict[str, Any], expected: int) -> None:
    task_id = started(gateway, signed_by(start_task(), ALICE))
    assert gateway.api(with_token(read_task_event(task_id), "oscar", **claims))[0] == expected


@pytest.mark.rule("13.jwt.functions")
def test_what_comes_by_token_reports_to_the_signed_api_and_is_followed_at_its_own(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "WAIT_SECONDS", 0.0)
    gateway.environ["ASYA_GATEWAY_URL"] = f"https://{SIGNED_HOST}"
    gateway.mesh = changed(gateway.mesh, tools={"publish": Tool(description="", route=("publish-report",))})
    started(gateway, with_token(start_task(), "alice"))
    assert gateway.messages()[0]["headers"]["x-asya-gateway-url"] == f"https://{SIGNED_HOST}"
    call = with_token(route_event("POST /tools/call", body={"name": "publish", "arguments": {}}), "alice")
    assert gateway.api(call)[1]["status_url"].startswith(f"https://{JWT_HOST}/api/v1/mesh/")
    assert gateway.messages("publish-report")[0]["headers"]["x-asya-gateway-url"] == f"https://{SIGNED_HOST}"


@pytest.mark.parametrize(
    ("headers", "base"),
    [
        ({}, f"https://{SIGNED_HOST}"),
        ({"x-forwarded-proto": "http", "x-forwarded-port": "4566"}, f"http://{SIGNED_HOST}:4566"),
        ({"x-forwarded-proto": "http", "x-forwarded-port": "80"}, f"http://{SIGNED_HOST}"),
        ({"x-forwarded-proto": "evil://", "x-forwarded-port": "1/../x"}, f"https://{SIGNED_HOST}"),
    ],
)
def test_links_lead_where_the_call_came_in(gateway: Gateway, headers: dict[str, str], base: str) -> None:
    event = route_event("GET /openapi.json")
    event |= {"headers": event["headers"] | headers}
    assert gateway.api(event)[1]["servers"] == [{"url": base}]


def test_each_api_has_a_document_of_its_own(gateway: Gateway) -> None:
    gateway.environ["ASYA_GATEWAY_URL"] = f"https://{SIGNED_HOST}"
    gateway.mesh = changed(gateway.mesh, gateway=GatewayTable(token_calls=("tasks", "streams")))
    signed = gateway.api(route_event("GET /openapi.json"))[1]
    assert set(signed["components"]["securitySchemes"]) == {"sigv4"}
    assert "/api/v1/mesh/events" in signed["paths"]
    document = gateway.api(with_token(route_event("GET /openapi.json"), "alice"))[1]
    assert document["servers"] == [{"url": f"https://{JWT_HOST}"}]
    assert document["components"]["securitySchemes"]["jwt"]["scheme"] == "bearer"
    action = document["paths"]["/api/v1/mesh"]["post"]
    assert (action["security"], "401" in action["responses"]) == ([{"jwt": []}], True)
    open_to_tokens = {call.path for call in calls_of(gateway.mesh) if call.is_for_tokens(("tasks", "streams"))}
    assert set(document["paths"]) == open_to_tokens
    assert not {"/tools/call", "/api/v1/mesh/events"} & open_to_tokens


@pytest.mark.rule("13.jwt")
def test_a_token_reports_nothing(gateway: Gateway) -> None:
    """The API for tokens has no calls for reports: these paths have other methods alone."""
    for route in ("POST /api/v1/mesh/events", "POST /api/v1/mesh/{id}/events"):
        assert gateway.api(with_token(route_event(route, body=[], id="t"), "alice"))[0] == 405


def test_one_key_of_two_callers_is_two_tasks(gateway: Gateway) -> None:
    ids = {started(gateway, with_token(recorded_event("start-task"), subject)) for subject in ("alice", "bob", "alice")}
    ids.add(started(gateway, signed_by(recorded_event("start-task"), ALICE)))
    assert len(ids) == 3


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"iss": ISSUER},
        {"sub": "alice"},
        {"iss": ISSUER, "sub": ""},
        {"iss": ISSUER, "sub": "a" * 256},
        {"iss": ISSUER, "sub": "zoë"},
        {"iss": ISSUER, "sub": "a\nb"},
        {"iss": ISSUER, "sub": 7},
    ],
)
def test_a_token_without_a_subject_has_no_identity(gateway: Gateway, claims: dict[str, object]) -> None:
    event = read_task_event("some-task")
    event = event | {"requestContext": event["requestContext"] | {"authorizer": {"jwt": {"claims": claims}}}}
    assert gateway.api(event)[0] == 403


def test_two_identities_are_ambiguous() -> None:
    both = Authorizer(Iam("arn:aws:iam::123456789012:user/alice", "AIDAALICE"), Jwt({"iss": ISSUER, "sub": "alice"}))
    assert identity_of(both, {}) is None
    assert identity_of(None, {}) is None
    assert identity_of(Authorizer(), {}) is None
    assert identity_of(Authorizer(both.iam), {}) == IamIdentity("arn:aws:iam::123456789012:user/alice", "AIDAALICE")
    assert identity_of(Authorizer(jwt=both.jwt), {}) == TokenIdentity(ISSUER, "alice", {})


def token_of(content: object) -> str:
    event = with_token(read_task_event("x"), "alice", groups=["people"])
    head, _, rest = event["headers"]["authorization"].removeprefix("Bearer ").partition(".")
    return f"Bearer {head}.{content if isinstance(content, str) else json.dumps(content)}.{rest.partition('.')[2]}"


@pytest.mark.rule("13.jwt.operators")
@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer a.b",
        token_of(""),
        token_of("!"),
        token_of("bm90IGpzb24"),
        token_of("W10"),
        "Bearer x.eyJpc3MiOiAiaHR0cHM6Ly9sb2dpbi5leGFtcGxlLmNvbS8iLCAic3ViIjogImJvYiIsICJncm91cHMiOiAieCJ9.y",
    ],
)
def test_claims_of_a_token_that_is_not_the_one_checked_do_not_count(authorization: str) -> None:
    checked = Authorizer(jwt=Jwt({"iss": ISSUER, "sub": "alice", "groups": "[mesh operators]"}))
    assert identity_of(checked, {"authorization": authorization}) == TokenIdentity(ISSUER, "alice", {})


def test_claims_are_read_with_the_values_they_have() -> None:
    event = with_token(
        read_task_event("x"), "alice", scope="openid mesh", groups=["a b", 7], name="A B", admin=True, level=3, at=1.5
    )
    checked = Authorizer(jwt=Jwt(event["requestContext"]["authorizer"]["jwt"]["claims"]))
    found = identity_of(checked, event["headers"])
    assert isinstance(found, TokenIdentity)
    assert {name: values for name, values in found.claims.items() if name not in ("iss", "sub")} == {
        "scope": ("openid", "mesh"),
        "groups": ("a b",),
        "name": ("A B",),
        "admin": ("true",),
        "level": ("3",),
        "at": (),
    }


def two_tokens(form: str, checked: dict[str, Any]) -> str:
    """A header with the checked token and a token that nobody has signed, of the same subject."""
    forged = with_token(read_task_event("x"), "alice", groups=["mesh operators"])["headers"]["authorization"]
    parts = (checked["headers"]["authorization"], forged)
    return form.format(*parts, *(part.removeprefix("Bearer ") for part in parts))


@pytest.mark.rule("13.jwt.operators")
@pytest.mark.parametrize(
    "form", ["{0}, {1}", "{0},{1}", "{1}, {0}", "{0} {1}", "{0} {3}", "{2} {3}", "{2}\t{3}", "{0},"]
)
def test_a_header_with_two_tokens_names_no_caller(gateway: Gateway, form: str) -> None:
    task_id = started(gateway, signed_by(start_task(), ALICE))
    event = with_token(read_task_event(task_id), "alice", groups=["people"])
    event["headers"]["authorization"] = two_tokens(form, event)
    status, content = gateway.api(event)
    assert (status, content["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("form", ["{0}", "{2}", " {0} ", "bearer {2}"])
def test_one_token_has_claims_with_and_without_its_scheme(form: str) -> None:
    event = with_token(read_task_event("x"), "alice", groups=["people"])
    checked = Authorizer(jwt=Jwt({"iss": ISSUER, "sub": "alice"}))
    found = identity_of(checked, {"authorization": two_tokens(form, event)})
    assert isinstance(found, TokenIdentity)
    assert found.claims["groups"] == ("people",)
