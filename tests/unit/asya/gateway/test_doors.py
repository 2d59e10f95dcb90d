"""The routes of an HTTP API: each request enters by the door of its call, whatever its path looks like (`protocol §13`, doors)."""

import re
from collections.abc import Sequence
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from asya.api_call import ApiCall
from asya.function.aws.telemetry import Telemetry
from asya.gateway.access import AccessRules
from asya.gateway.call_table import CALLS
from asya.gateway.doors import Door, choose, doors_of, passed_path
from asya.gateway.http.entry_point import with_rights
from asya.gateway.http.router import HttpRoute, Request, Response, respond
from asya.protocol import names
from asya.protocol.mesh_table import Gateway, MeshTable
from asya_infra.permissions.evaluation import Request as IamRequest
from asya_infra.permissions.evaluation import is_allowed
from tests.doubles.gateway_functions import ADMIN, ALICE
from tests.doubles.tasks import at
from tests.fuzz.envelope_ids import USABLE
from tests.fuzz.sizes import examples

LOG = Telemetry("flights", "test").log
DOORS = doors_of(CALLS)
MESH = MeshTable(namespace="shop", actors={}, gateway=Gateway(token_calls=("tools",)))
ACCESS = AccessRules(MESH, "123456789012", "us-east-1")
TOKEN = {"jwt": {"claims": {"iss": "https://login.example.com/", "sub": "alice"}}}


def function_routes(function: str, calls: Sequence[ApiCall] = CALLS) -> list[HttpRoute]:
    """The routes of one function; a call answers with itself."""

    def answers(call: ApiCall) -> HttpRoute:
        def responder(request: Request, _now: object) -> Response:
            return Response(200, (call.route, dict(request.parameters)))

        own = with_rights(call, ACCESS, responder) if call.function == function else None
        return HttpRoute(call, own, call.is_for_tokens(MESH.gateway.token_calls))

    return [answers(call) for call in calls]


def enter(
    method: str, raw: str, authorizer: object = None, doors: Sequence[Door] = DOORS, calls: Sequence[ApiCall] = CALLS
) -> tuple[Door, Response] | None:
    """Let API Gateway take a request, and the function behind its door answer; None if no route matches.

    Args:
        authorizer: the identity that API Gateway has checked. A door that is not open refuses a request without one, so no
            such request comes here.
    """
    path = passed_path(raw)
    door = choose(doors, method, path)
    if door is None:
        return None
    event = {
        "routeKey": door.key,
        "rawPath": path,
        "headers": {},
        "pathParameters": door.parameters(path) or None,
        "requestContext": {
            "http": {"method": method, "path": path},
            "authorizer": None if door.is_open else authorizer or {"iam": ADMIN},
        },
    }
    return door, respond(event, function_routes(door.function, calls), at(0), LOG)


def filled(path: str, values: Sequence[str]) -> str:
    """A path with these values in place of its variables, as a client writes it."""
    left = iter(values)
    return re.sub(r"{\w+}", lambda _: quote(next(left), safe=""), path)


@st.composite
def made_calls(draw: st.DrawFn) -> tuple[str, str, tuple[str, ...]]:
    """A path of a declared call: the call, the path and its values."""
    call = draw(st.sampled_from(CALLS))
    values = tuple(draw(USABLE) for _ in range(call.variables))
    return call.route, filled(call.path, values), values


def owner_of(method: str, path: str, calls: Sequence[ApiCall] = CALLS) -> ApiCall | None:
    """The call of a path, as the table says it: the one with the fewest variables."""
    matches = [call for call in calls if call.method == method and call.parameters(path) is not None]
    return min(matches, key=lambda call: call.variables, default=None)


@pytest.mark.rule("13.doors")
@given(made=made_calls())
@examples(200, 5000)
def test_every_call_enters_by_a_door_to_its_function_with_its_authorization(
    made: tuple[str, str, tuple[str, ...]],
) -> None:
    route, path, _ = made
    method = route.split()[0]
    call = owner_of(method, passed_path(path).replace("%25", "%"))
    assert call is not None
    entered = enter(method, path)
    assert entered is not None
    door, response = entered
    assert (door.function, door.is_open) == (call.function, call.is_public)
    assert response.status == 200, (door, response)
    found, parameters = response.content  # type: ignore[misc]
    assert found == call.route
    assert filled(call.path, list(parameters.values())) == path


def test_a_door_has_the_rate_of_its_call() -> None:
    for call in CALLS:
        door = choose(DOORS, call.method, call.path)
        assert door is not None
        assert door.rate == call.rate, call.route
    main = choose(doors_of(CALLS, (7, 9)), "GET", "/api/v1/mesh")
    assert main == Door(method="ANY", path="/{proxy+}", function=names.GATEWAY_API, rate=(7, 9))


def test_open_doors_are_those_of_public_calls() -> None:
    assert {door.key for door in DOORS if door.is_open} == {call.route for call in CALLS if call.is_public}


HOSTILE = (
    *(
        "//",
        "/./",
        "/../",
        "%2f",
        "%2F",
        "%5c",
        "%5C",
        "\\",
        "%2e%2e",
        "%2E",
        "%252f",
        "%252e%252e",
        "%00",
        "%3f",
        "%23",
    ),
    *("?", ";", "..;", "%c0%af", "%ff", "%e2%88%95", "/", "mesh", "events", "{id}", "{proxy+}"),
)


@st.composite
def hostile_paths(draw: st.DrawFn) -> tuple[str, str]:
    """A method, and the path of a call with parts that readers of paths take for something else."""
    call = draw(st.sampled_from(CALLS))
    path = filled(call.path, ["t-1"] * call.variables)
    for _ in range(draw(st.integers(1, 3))):
        cut = draw(st.integers(0, len(path)))
        part = draw(st.sampled_from(HOSTILE) | st.just(f"%{ord(path[cut % len(path)]):02x}"))
        path = f"/{path[:cut]}{part}{path[cut + draw(st.integers(0, 1)) :]}".replace("/", "/", 1)
        path = path if draw(st.booleans()) else path[1:] if path.startswith("//") else path
    return draw(st.sampled_from((call.method, "GET", "POST", "DELETE", "PUT"))), path.partition("?")[0]


def arn(method: str, path: str) -> str:
    return f"arn:aws:execute-api:us-east-1:1:api/$default/{method}{path}"


PATTERNS = [re.sub(r"{\w+}", "*", call.route) for call in CALLS]


def may_call(pattern: str, method: str, path: str) -> bool:
    statement = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": arn(*pattern.split(" ", 1))}
    return is_allowed([statement], IamRequest("execute-api:Invoke", arn(method, path)))


@pytest.mark.slow
@pytest.mark.rule("13.doors.paths")
@given(request=hostile_paths())
@example(request=("GET", "/api/v1/mesh/t-1%2fchildren"))
@example(request=("GET", "/api/v1/mesh/t-1%2Fstream/../events"))
@example(request=("GET", "//health"))
@example(request=("POST", "/api/v1/mesh/t-1/%72esume"))
@examples(300, 20_000)
def test_a_hostile_path_reaches_no_other_call_than_iam_has_judged(request: tuple[str, str]) -> None:
    """A policy that allows one call allows no path that the function reads as another call, however it is written."""
    method, raw = request
    entered = enter(method, raw)
    if entered is None:
        return
    door, response = entered
    if response.status != 200:
        assert response.status in (403, 404, 405)
        return
    route, _ = response.content  # type: ignore[misc]
    call = next(each for each in CALLS if each.route == route)
    assert (door.function, door.is_open or not call.is_public) == (call.function, True)
    for pattern in PATTERNS:
        # Whether IAM reads the path as it was written or decoded: what it allows in the one form it allows in the other.
        if may_call(pattern, method, raw):
            assert may_call(pattern, method, passed_path(raw).replace("%25", "%")), (pattern, route)


@pytest.mark.rule("13.doors.paths")
@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/mesh/a%252Fb",
        "/api/v1/mesh/%2e%2e/health",
        "/api/v1/mesh/../operations/mesh",
        "/api/v1/mesh/.",
        "/api/v1/mesh/..",
        "//api/v1/mesh",
        "/api//v1/mesh",
        "/api/v1/mesh//timeline",
        "/API/v1/mesh",
    ],
)
def test_an_odd_path_is_unknown(path: str) -> None:
    entered = enter("GET", path)
    assert entered is not None
    if "%25" not in path:
        assert entered[1].status == 404


@pytest.mark.rule("13.doors.paths")
@pytest.mark.parametrize(
    "path", ["/api/v1/mesh/a%2Fb", "/api/v1/mesh/a%5cb", "/api/v1/mesh/%2e%2E", "/%2E/health", "/a%252F%2f"]
)
def test_what_api_gateway_leaves_encoded_is_refused(path: str) -> None:
    """API Gateway decodes them. A reader in front that does not, or decodes twice, finds no call."""
    event = {"headers": {}, "requestContext": {"http": {"method": "GET", "path": path}, "authorizer": {"iam": ADMIN}}}
    assert respond(event, function_routes(names.GATEWAY_API), at(0), LOG).status == 404


@pytest.mark.rule("13.doors.paths")
@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("/api/v1/mesh/x", {"proxy": "api/v1/mesh/x?/children"}),
        ("/api/v1/mesh/x", {"proxy": "api/v1/mesh/y"}),
        ("/api/v1/mesh/x", {"id": "y"}),
    ],
)
def test_a_path_that_api_gateway_has_read_otherwise_is_unknown(path: str, parameters: dict[str, str]) -> None:
    event = {
        "headers": {},
        "pathParameters": parameters,
        "requestContext": {"http": {"method": "GET", "path": path}, "authorizer": {"iam": ADMIN}},
    }
    assert respond(event, function_routes(names.GATEWAY_API), at(0), LOG).status == 404


@pytest.mark.rule("13.doors.unknown")
def test_an_unknown_path_and_another_method_are_refused_by_the_function() -> None:
    def refused(method: str, path: str) -> tuple[int, str | None]:
        entered = enter(method, path)
        assert entered is not None
        return entered[1].status, entered[1].headers.get("allow")

    assert refused("GET", "/api/v1/nothing") == (404, None)
    assert refused("GET", "/api/v1/operations/nothing") == (404, None)
    assert refused("PUT", "/api/v1/mesh/t-1") == (405, "DELETE, GET")
    # The functions of a path may be several.
    assert refused("DELETE", "/api/v1/mesh/t-1/events") == (405, "GET, POST")
    assert refused("POST", "/api/v1/mesh/t-1/stream") == (405, "GET")
    assert refused("POST", "/health") == (405, "GET")


@pytest.mark.rule("13.doors")
@pytest.mark.parametrize("call", [call for call in CALLS if not call.is_public], ids=lambda call: call.route)
def test_a_signed_call_without_an_identity_is_refused_by_the_function_too(call: ApiCall) -> None:
    """As if a route had no authorizer."""
    path = filled(call.path, ["t-1"] * call.variables)
    for authorizer in (None, {}, {"iam": {}}, {"iam": ALICE, "jwt": TOKEN["jwt"]}):
        context = {"http": {"method": call.method, "path": path}, "authorizer": authorizer}
        event = {"headers": {}, "requestContext": context}
        response = respond(event, function_routes(call.function), at(0), LOG)
        assert response.status == (404 if authorizer and "jwt" in authorizer and call.group != "tools" else 403)


@pytest.mark.rule("13.jwt", "13.doors")
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.route)
def test_a_token_reaches_the_calls_of_its_groups_alone(call: ApiCall) -> None:
    groups = MESH.gateway.token_calls
    doors = doors_of(each for each in CALLS if each.is_for_tokens(groups))
    path = filled(call.path, ["t-1"] * call.variables)
    entered = enter(call.method, path, TOKEN, doors)
    if call.is_public and call.audience == "clients":
        assert entered is not None
        assert entered[1].status == 200
    elif not call.takes_tokens(groups):
        assert entered is None or entered[1].status in (404, 405)
    elif call.rights != "operators":
        assert entered is not None
        assert entered[1].status == 200


def test_a_call_of_another_function_is_refused_while_a_deployment_moves_it() -> None:
    event = {
        "headers": {},
        "requestContext": {"http": {"method": "GET", "path": "/api/v1/operations/mesh"}, "authorizer": {"iam": ADMIN}},
    }
    response = respond(event, function_routes(names.GATEWAY_API), at(0), LOG)
    assert response.status == 503


WORDS = st.sampled_from(("a", "b", "{x}"))
FUNCTIONS = st.sampled_from((names.GATEWAY_API, "x-one", "x-two"))


@st.composite
def made_up_tables(draw: st.DrawFn) -> list[ApiCall]:
    """Calls of several functions. No request fits two of them with as many variables each."""
    found: list[ApiCall] = []
    for _ in range(draw(st.integers(1, 8))):
        path = "/" + "/".join(draw(st.lists(WORDS, min_size=1, max_size=4)))
        path = re.sub(r"{x}", lambda match: f"{{x{match.start()}}}", path)
        call = ApiCall(
            method=draw(st.sampled_from(("GET", "POST"))),
            path=path,
            handler="h",
            function=draw(FUNCTIONS),
            summary="s",
            rights=draw(st.sampled_from(("public", "signed", "signed", "signed"))),
            rate=draw(st.sampled_from((None, None, None, (1, 1)))),
        )
        if not any(_are_alike(call, other) for other in found):
            found.append(call)
    return found


def _are_alike(one: ApiCall, other: ApiCall) -> bool:
    pairs = list(zip(ones := one.path.split("/"), others := other.path.split("/"), strict=False))
    overlap = len(ones) == len(others) and all(a == b or a.startswith("{") or b.startswith("{") for a, b in pairs)
    return one.method == other.method and overlap and one.variables == other.variables


@pytest.mark.slow
@pytest.mark.rule("13.doors")
@given(calls=made_up_tables(), parts=st.lists(st.sampled_from(("a", "b", "c")), min_size=1, max_size=4))
@examples(300, 20_000)
def test_any_table_of_calls_has_doors_that_lead_to_its_functions(calls: list[ApiCall], parts: list[str]) -> None:
    doors = doors_of(calls)
    assert len(doors) <= len(calls)
    assert len({door.key for door in doors}) == len(doors)
    for method in ("GET", "POST"):
        path = "/" + "/".join(parts)
        call, door = owner_of(method, path, calls), choose(doors, method, path)
        if call is not None:
            assert door is not None
            assert (door.function, door.is_open) == (call.function, call.is_public)
        elif door is not None:
            assert not door.is_open


def test_a_call_may_answer_with_a_slash_at_its_end() -> None:
    own = replace(CALLS[0], path="/things", function="x-own", takes_slash=True, rate=(1, 1))
    assert [door.key for door in doors_of([own])] == ["POST /things", "POST /things/{proxy+}"]
    entered = enter("POST", "/api/v1/mesh/")
    assert entered is not None
    assert entered[1].content == ("POST /api/v1/mesh", {})
