"""protocol §1, §2, §3, §13: the first envelope and the record of a new task."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from asya.function.sqs import queue_group
from asya.protocol import codec
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Route
from asya.protocol.mesh_table import Actor, MeshTable
from asya.tasks.starts.submission import (
    Origin,
    Submission,
    first_envelope,
    first_message,
    first_queue,
    first_record,
    is_stealth,
    read_submission,
)
from tests.doubles.tasks import at

MESH = MeshTable(
    namespace="flights",
    actors={
        "inspect": Actor(kind="handler"),
        "inspect-canary": Actor(kind="handler", fair_by="tenant"),
        "x-sink": Actor(kind="crew"),
        "x-pause": Actor(kind="pause"),
    },
)
FAIR = replace(MESH, actors={**MESH.actors, "inspect": Actor(kind="handler", fair_by="owner")})
ORIGIN = Origin(gateway_url="https://api.example", span="00f067aa0ba902b7")


def read(body: object, actor: str | None = "inspect") -> Submission:
    return read_submission(json.dumps(body).encode(), actor, MESH)


def first(body: object, origin: Origin = ORIGIN) -> dict[str, Any]:
    envelope: dict[str, Any] = json.loads(codec.encode(first_envelope(read(body), "t-1", at(0), origin)))
    return envelope


@pytest.mark.rule("3.mesh-version")
def test_the_first_message_says_the_version_of_the_gateway() -> None:
    message = first_message(read({}), ORIGIN, replace(MESH, version="0123456789ab"))("t-1", at(0))
    assert message.envelope.header("x-asya-mesh-version") == "0123456789ab"


@pytest.mark.rule("2.creation")
def test_the_envelope_of_a_new_task() -> None:
    envelope = first({"payload": {"flights": "raw/f.csv"}, "headers": {"tenant": "acme"}, "timeout": 90})
    trace = envelope["headers"].pop("traceparent")
    assert trace.endswith("-00f067aa0ba902b7-01")
    assert envelope == {
        "id": "t-1",
        "route": {"prev": [], "curr": "inspect", "next": []},
        "headers": {"tenant": "acme", "x-asya-gateway-url": "https://api.example"},
        "status": {
            "phase": "pending",
            "actor": "inspect",
            "attempt": 1,
            "max_attempts": 1,
            "created_at": "2026-11-20T09:00:00.000000Z",
            "updated_at": "2026-11-20T09:00:00.000000Z",
            "deadline_at": "2026-11-20T09:01:30.000000Z",
        },
        "payload": {"flights": "raw/f.csv"},
    }


@pytest.mark.rule("2.creation")
def test_without_a_timeout_there_is_no_deadline_and_without_a_payload_null() -> None:
    envelope = first({})
    assert "deadline_at" not in envelope["status"]
    assert envelope["payload"] is None
    assert read_submission(b"", "inspect", MESH).timeout is None


def test_the_record_of_a_new_task() -> None:
    record = first_record(first_envelope(read({"timeout": 90}), "t-1", at(0), ORIGIN), "AIDA")
    assert (record.status, record.owner, record.actor, record.attempt) == ("pending", "AIDA", "inspect", 1)
    assert record.created_at == record.updated_at == "2026-11-20T09:00:00.000000Z"
    assert (record.deadline_at, record.route) == ("2026-11-20T09:01:30.000000Z", Route((), "inspect", ()))


def test_payloads_are_unchanged_except_for_characters_that_sqs_rejects() -> None:
    body = '{"payload": {"n": 0.10000000000000000000001, "text": "ä\uffff"}}'.encode()
    payload = bytes(read_submission(body, "inspect", MESH).payload)
    assert payload == rb'{"n": 0.10000000000000000000001, "text": "\u00e4\uffff"}'


@pytest.mark.rule("3.gateway-strips")
def test_managed_headers_are_stripped_but_for_two() -> None:
    sent = {
        "x-asya-generation": 7,
        "X-Asya-Root": "other",
        "x-asya-gateway-url": "http://evil.example",
        "traceparent": "x",
        "tracestate": "y",
        "mine": {"a": 1},
        "x-asya-mesh-status": "off",
        "x-asya-route-override": {"inspect": "inspect-canary"},
    }
    envelope = first({"headers": sent})
    assert set(envelope["headers"]) == {
        *("mine", "x-asya-mesh-status", "x-asya-route-override", "x-asya-gateway-url", "traceparent")
    }
    assert envelope["headers"]["x-asya-gateway-url"] == "https://api.example"
    assert envelope["route"]["curr"] == "inspect"


def test_an_override_changes_the_queue_and_its_tenant() -> None:
    submission = read({"headers": {"x-asya-route-override": {"inspect": "inspect-canary"}, "tenant": "acme"}})
    envelope = first_envelope(submission, "t", at(0), ORIGIN)
    assert first_queue(envelope) == "inspect-canary"
    assert queue_group(envelope, MESH.actors["inspect-canary"]) == "acme"
    assert queue_group(envelope, MESH.actors["inspect"]) is None


@pytest.mark.rule("3.trace")
def test_a_trace_is_continued() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    going_on = first({}, Origin("https://api", "00f067aa0ba902b7", parent, "vendor=1"))
    assert going_on["headers"]["traceparent"] == "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
    assert going_on["headers"]["tracestate"] == "vendor=1"
    broken = first({}, Origin("https://api", "00f067aa0ba902b7", "00-zz", "vendor=1"))
    assert "tracestate" not in broken["headers"]


def test_stealth() -> None:
    assert is_stealth(read({"headers": {"x-asya-mesh-status": "off"}}))
    assert not is_stealth(read({"headers": {"x-asya-mesh-status": "on"}}))
    assert not is_stealth(read({}))


@pytest.mark.rule("13.start.timeout")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"route": {"curr": "inspect"}}, "route"),
        ({"next": ["x"]}, "next"),
        ({"playload": 1}, "playload"),
        ({"headers": []}, "headers"),
        ({"headers": "x"}, "headers"),
        ({"headers": {"x-asya-route-override": "inspect"}}, "headers.x-asya-route-override"),
        ({"headers": {"x-asya-route-override": {"inspect": 1}}}, "headers.x-asya-route-override"),
        ({"timeout": 1.9}, "timeout"),
        ({"timeout": -5}, "timeout"),
        ({"timeout": 1e12}, "timeout"),
        ({"timeout": "5m"}, "timeout"),
        ({"timeout": True}, "timeout"),
    ],
)
def test_a_rejected_request_names_the_field(body: object, field: str) -> None:
    with pytest.raises(ApiError) as caught:
        read(body)
    assert (caught.value.status, caught.value.field) == (400, field)


@pytest.mark.parametrize(
    "body",
    [
        *(b"[]", b'"x"', b"{", b"{} {}", b"{'a':1}", b'{"payload": NaN}', b"\xff", b"null"),
        b'{"payload": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        *(b'{"payload": "\\ud800"}', b'{"payload": 1e999}', b'{"payload": "\xff"}', b'{"headers": {"a": "\\ud800"}}'),
    ],
)
def test_invalid_json_is_rejected(body: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        read_submission(body, "inspect", MESH)
    assert (caught.value.status, caught.value.code) == (400, "invalid_json")


@pytest.mark.parametrize("actor", [None, ""])
def test_an_actor_is_needed(actor: str | None) -> None:
    with pytest.raises(ApiError) as caught:
        read({}, actor)
    assert (caught.value.status, caught.value.field) == (400, "actor")


@pytest.mark.rule("13.start.refused")
@pytest.mark.parametrize(
    "actor", ["nobody", "x-sink", "x-pause", "x-anything", "happy-end", "In Spect", "inspect,nobody"]
)
def test_unknown_and_reserved_actors_are_not_found(actor: str) -> None:
    with pytest.raises(ApiError) as caught:
        read({}, actor)
    assert (caught.value.status, caught.value.code) == (404, "unknown_actor")


def test_an_override_to_an_unknown_actor_is_not_found() -> None:
    with pytest.raises(ApiError) as caught:
        read({"headers": {"x-asya-route-override": {"inspect": "x-sink"}}})
    assert caught.value.status == 404


@pytest.mark.rule("3.tenant")
@pytest.mark.parametrize("name", ["x-asya-tenant", "X-Asya-Tenant", "x-asya-owner", "owner", "tenant"])
def test_3_a_caller_names_no_tenant_but_itself(name: str) -> None:
    """Eve writes Alice's name into each header that a tenant could be read from."""
    eve = Origin(gateway_url="https://api.example", span="00f067aa0ba902b7", tenant="AIDAEVE")
    message = first_message(read({"headers": {name: "AIDAALICE"}}), eve, FAIR)("t-1", at(0))
    assert message.delivery.group == "AIDAEVE"
    assert message.envelope.header("x-asya-tenant") == "AIDAEVE"


def test_without_a_tenant_the_envelope_has_no_header_more() -> None:
    assert "x-asya-tenant" not in first({"headers": {"x-asya-tenant": "AIDAALICE"}})["headers"]
