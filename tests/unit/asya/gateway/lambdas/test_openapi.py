"""The OpenAPI document, and the list of calls behind routes, functions and document."""

import json
import re

import pytest
from jsonschema_rs import meta, validator_for
from msgspec.structs import replace

from asya.function.aws.telemetry import Telemetry
from asya.gateway.call_table import CALLS, calls_of
from asya.gateway.doors import choose, doors_of
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.lambdas.api import build_api
from asya.gateway.lambdas.openapi import document
from asya.gateway.operations.wiring import build_logs, build_operations
from asya.gateway.streams.routes import stream_routes
from asya.protocol import names
from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.triggers import Trigger, Webhook
from tests.doubles.gateway_functions import (
    ALICE,
    EVENTS,
    Gateway,
    call_of,
    recorded_event,
    route_event,
    settings_with,
    signed_by,
)
from tests.doubles.gateway_functions import MESH as PLAIN
from tests.doubles.mcp_gateway import APPROVE, TOOLS

MESH = replace(PLAIN, actors=PLAIN.actors | {"approve": APPROVE}, tools=TOOLS)
"""A mesh with every call for clients."""
DOCUMENT = document(MESH, "https://gateway.example")
TASK = str(recorded_event("read-task")["rawPath"]).rpartition("/")[2]


@pytest.fixture(autouse=True)
def with_tools(gateway: Gateway) -> None:
    gateway.mesh = MESH


@pytest.mark.parametrize("actors", [5, 51])
def test_every_call_is_answered_by_its_function(gateway: Gateway, actors: int) -> None:
    """In a mesh of many actors `x-logs` answers the calls for lines."""
    more = {f"actor-{number}": Actor(kind="handler") for number in range(actors - len(MESH.actors))}
    mesh = replace(MESH, actors=MESH.actors | more)
    settings = settings_with(gateway.environ, mesh)
    builds = {names.GATEWAY_API: build_api, names.GATEWAY_STREAM: stream_routes, names.OPERATIONS: build_operations}
    builds |= {names.LOGS: build_logs} if actors > 50 else {}
    assert {call.function for call in calls_of(mesh)} == {*builds}
    for name, build in builds.items():
        routes = build(HttpServices(settings, given_telemetry=Telemetry("flights", "test")))
        assert {route.call.route for route in routes if route.responder is not None} == {
            call.route for call in calls_of(mesh) if call.function == name
        }


def test_the_document_is_served_signed(gateway: Gateway) -> None:
    status, content = gateway.api(route_event("GET /openapi.json", ALICE))
    assert (status, content["openapi"]) == (200, "3.1.0")
    assert content["paths"] == json.loads(json.dumps(DOCUMENT["paths"]))
    assert gateway.api(signed_by(route_event("GET /openapi.json", ALICE), None))[0] == 403


@pytest.mark.rule("13.openapi")
def test_the_calls_of_other_systems_are_not_in_the_document() -> None:
    """A mesh with a webhook has one more call, for those who are no clients of the mesh."""
    hook = Trigger(route=("greet",), webhook=Webhook(secret="s", signature="github"))
    mesh = MeshTable(namespace="shop", actors={}, triggers={"hook": hook})
    assert "/hooks/{name}" not in document(mesh, "https://gateway.example")["paths"]


def test_every_reference_resolves_and_every_schema_is_valid() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    text = json.dumps(DOCUMENT)
    for part in text.split('"#/components/schemas/')[1:]:
        assert part.partition('"')[0] in schemas
    for schema in schemas.values():
        assert meta.is_valid(schema)


RECORDED = {path.stem: recorded_event(path.stem) for path in sorted(EVENTS.glob("*.json"))}
BUILT = {
    call.route: route_event(call.route, **dict.fromkeys(re.findall(r"{(\w+)}", call.path), TASK))
    for call in CALLS
    if call.audience != "other systems" and call not in map(call_of, RECORDED.values())
}
"""An event of each call that nobody has recorded; with a body or a query it needs a recorded one."""


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_event_enters_by_its_door(name: str) -> None:
    event, call = RECORDED[name], call_of(RECORDED[name])
    door = choose(doors_of(CALLS), call.method, event["rawPath"])
    assert door is not None
    assert door.function == call.function
    assert event["routeKey"] == event["requestContext"]["routeKey"] == door.key
    assert (event.get("pathParameters") or {}) == door.parameters(event["rawPath"])


@pytest.mark.rule("13.openapi")
@pytest.mark.parametrize("name", [*RECORDED, *BUILT])
def test_calls_are_answered_as_documented(gateway: Gateway, name: str) -> None:
    """The task exists, and the caller may see it."""
    event = (RECORDED | BUILT)[name]
    gateway.write_reports(json.loads(recorded_event("report-events")["body"]))
    call = call_of(event)
    status, content = gateway.call_function(call.function, event)
    responses = DOCUMENT["paths"][call.path][call.method.lower()]["responses"]
    assert str(status) in responses
    assert status < 500
    if isinstance(content, str):
        assert "text/event-stream" in responses[str(status)]["content"]
    elif content is not None:
        schema = responses[str(status)]["content"]["application/json"]["schema"]
        found = validator_for(schema | {"components": DOCUMENT["components"]}).iter_errors(content)
        assert [error.message for error in found] == []
