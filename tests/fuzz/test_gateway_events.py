"""Any request gets an answer of the API: no internal error, and an error that names its code."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from asya.function.aws.telemetry import Telemetry
from asya.gateway.call_table import CALLS
from asya.gateway.doors import choose, doors_of
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.http.router import answer
from asya.gateway.lambdas.api import build_api
from asya.gateway.operations.wiring import build_operations
from asya.gateway.streams.routes import stream_routes
from asya.protocol import names
from tests.doubles.gateway_functions import (
    ALICE,
    BOB,
    EVENTS,
    MESH,
    Gateway,
    call_of,
    emulated_gateway,
    settings_with,
)
from tests.doubles.mcp_gateway import APPROVE, TOOLS
from tests.doubles.streams import FakeClock
from tests.doubles.tasks import at
from tests.fuzz.mutations import mutated, mutated_text, odd_values
from tests.fuzz.sizes import examples
from tests.unit.memory_tables import memory_tables

BUILD = {
    names.GATEWAY_API: build_api,
    names.GATEWAY_STREAM: stream_routes,
    names.OPERATIONS: build_operations,
}
DOORS = doors_of(CALLS)
RECORDED = {path.stem: json.loads(path.read_text()) for path in sorted(EVENTS.glob("*.json"))}
TASK = "task-1"
# API Gateway passes headers and queries as text.
TEXTS = st.text(max_size=12) | st.sampled_from(
    ("", "0", "-1", "1e9", "9" * 400, "é", "../x", "a/b", "%2e", "null", TASK)
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with tools and with one task at each status."""
    with memory_tables(), emulated_gateway(tmp_path_factory.mktemp("gateway")) as made:
        made.mesh = replace(MESH, actors=MESH.actors | {"approve": APPROVE}, tools=TOOLS)
        yield made


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A recorded request with other parameters, headers and another body; returns its function, too."""
    event = json.loads(json.dumps(RECORDED[draw(st.sampled_from(sorted(RECORDED)))]))
    call = call_of(event)
    context = event["requestContext"]
    event["headers"] |= draw(st.dictionaries(st.sampled_from(sorted(event["headers"])), TEXTS, max_size=2))
    query = event.get("queryStringParameters") or {}
    known = st.sampled_from(("actor", "limit", "cursor", "status", "parent", "token", "last_event_id", *query))
    event["queryStringParameters"] = query | draw(st.dictionaries(known, TEXTS, max_size=2)) or None
    if parameters := call.parameters(event["rawPath"]):
        path = call.path
        for name, value in parameters.items():
            path = path.replace(f"{{{name}}}", draw(st.just(value) | TEXTS.filter(bool)))
        context["http"]["path"] = event["rawPath"] = path
        door = choose(DOORS, call.method, path)
        event["pathParameters"] = door.parameters(path) if door is not None else None
    if event.get("body") is not None:
        event["body"] = draw(mutated_text(_json_of(event["body"])) | st.text(max_size=30))
        event["isBase64Encoded"] = draw(st.integers(0, 15)) == 0
    if draw(st.booleans()) and "authorizer" in context:
        context["authorizer"] = {"iam": draw(st.sampled_from((ALICE, BOB)))}
    return call.function, event


def _json_of(body: str) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body


def call(gateway: Gateway, function: str, event: dict[str, Any]) -> dict[str, Any]:
    """Let a function answer an event; time passes only while it waits."""
    telemetry = Telemetry("flights", "fuzz")
    build: Any = BUILD[function]
    own = HttpServices(settings_with(gateway.environ, gateway.mesh), FakeClock(), telemetry)
    return answer(event, build(own), at(0), telemetry.log)


def check_answer(response: dict[str, Any]) -> None:
    """Check that an answer is no internal error, and that a refusal says why."""
    status = response["statusCode"]
    assert 200 <= status < 500
    if status >= 400 and response["headers"]["content-type"] == "application/json":
        body = json.loads(response["body"])
        error = body["error"]
        assert error["message"]
        assert error["code"] != "internal"


@pytest.mark.rule("13.errors")
@given(request=requests())
@examples(40, 2000)
def test_any_request_gets_an_answer(gateway: Gateway, request: tuple[str, dict[str, Any]]) -> None:
    check_answer(call(gateway, *request))


@pytest.mark.rule("13.errors")
@given(data=st.data())
@examples(20, 500)
def test_an_event_of_another_form_is_refused(gateway: Gateway, data: st.DataObject) -> None:
    """For example an event of a REST API, or a person who invokes the function by hand."""
    recorded = RECORDED[data.draw(st.sampled_from(sorted(RECORDED)))]
    event = data.draw(mutated(recorded) | odd_values())
    if isinstance(event, dict):
        check_answer(call(gateway, call_of(recorded).function, event))
