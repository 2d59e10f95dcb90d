"""Streams and stream tokens over HTTP (`protocol §13`, `GET …/events`, stream-token; `§14`)."""

import json
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace as changed

from asya.function.aws.telemetry import Telemetry
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.http.router import answer
from asya.gateway.streams import routes, stream_tokens
from asya.gateway.streams import routes as gateway_stream
from asya.gateway.streams.routes import stream_routes
from asya.gateway.streams.sse import event as event_text
from asya.protocol.api_errors import ApiError
from asya.senders.aws.key_items import KeyItems, MissingSecretError
from tests.doubles.gateway_functions import (
    ALICE,
    BOB,
    MESH,
    Event,
    Gateway,
    recorded_event,
    report,
    route_event,
    settings_with,
    signed_by,
    with_body,
)
from tests.doubles.streams import FakeClock
from tests.doubles.tasks import at

SIGNED = "GET /api/v1/mesh/{id}/events"
OPEN = "GET /api/v1/mesh/{id}/stream"
TOKEN = "POST /api/v1/mesh/{id}/stream-token"
TELEMETRY = Telemetry("flights", "test")
Events = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def with_operators(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin",))


@pytest.fixture
def task_id(gateway: Gateway) -> str:
    """The id of a task of Alice."""
    return str(gateway.api(signed_by(with_body(recorded_event("start-task")), ALICE))[1]["id"])


def events_of(text: object) -> Events:
    """Returns the events of a stream, as an EventSource reads them."""
    events: Events = []
    for block in text.split("\n\n") if isinstance(text, str) else ():
        fields: dict[str, list[str]] = {}
        for line in block.splitlines():
            name, _, value = line.partition(": ")
            fields.setdefault(name, []).append(value)
        if "data" in fields:
            data = json.loads("\n".join(fields["data"]))
            events.append({"event": fields["event"][0], "id": fields["id"][0], "data": data})
    return events


def stream_event(
    route: str, task_id: str, last: str | None = None, iam: dict[str, str] | None = ALICE, **query: str
) -> Event:
    event = signed_by(route_event(route, None, None, id=task_id, **query), iam)
    return event | {"headers": event["headers"] | ({"last-event-id": last} if last is not None else {})}


def follow(gateway: Gateway, task_id: str, last: str | None = None, route: str = SIGNED) -> Events:
    status, content = gateway.stream(stream_event(route, task_id, last))
    assert status == 200
    return events_of(content)


def publish(gateway: Gateway, task_id: str, *numbers: int) -> None:
    body = [
        {
            "type": "fly",
            "id": task_id,
            "at": "2026-11-20T09:00:00Z",
            "actor": "a",
            "sequence": number,
            "data": {"n": number},
        }
        for number in numbers
    ]
    assert set(gateway.write_reports(body)) == {204}


# --- the stream


@pytest.mark.rule("13.stream")
def test_a_task_is_followed_to_its_end_across_connections(gateway: Gateway, task_id: str) -> None:
    received = follow(gateway, task_id)
    assert [(each["event"], each["data"]["status"]) for each in received] == [("status", "pending")]
    report(gateway, task_id, "received", 1)
    publish(gateway, task_id, 0, 1)
    received += follow(gateway, task_id, received[-1]["id"])
    report(gateway, task_id, "completed", 3)
    report(gateway, task_id, "succeeded", 4, data={"result": {"n": 1}}, position=1)
    received += follow(gateway, task_id, received[-1]["id"])
    assert [(each["event"], each["data"].get("step"), each["data"].get("sequence")) for each in received[1:]] == [
        ("status", "received", None), ("partial", None, 0), ("partial", None, 1),
        ("status", "processing", None), ("status", "completed", None), ("final", None, None),
    ]  # fmt: skip
    assert received[2]["data"]["data"] == {"n": 0}
    final = received[-1]["data"]
    assert final == gateway.api(route_event("GET /api/v1/mesh/{id}", ALICE, id=task_id))[1]
    assert final["result"] == {"n": 1}


@pytest.mark.rule("13.stream.second-final")
def test_a_client_gets_204_only_while_its_final_is_the_end(gateway: Gateway, task_id: str) -> None:
    report(gateway, task_id, "failed", data={"provisional": True})
    [first] = follow(gateway, task_id)
    assert first["data"]["provisional"] is True
    assert gateway.stream(stream_event(SIGNED, task_id, first["id"])) == (204, None)
    report(gateway, task_id, "succeeded", 1)
    [second] = follow(gateway, task_id, first["id"])
    assert (second["event"], second["data"]["status"]) == ("final", "succeeded")
    assert "provisional" not in second["data"]
    assert gateway.stream(stream_event(SIGNED, task_id, second["id"])) == (204, None)


@pytest.mark.rule("13.stream")
def test_a_client_that_has_final_gets_204(gateway: Gateway, task_id: str) -> None:
    report(gateway, task_id, "canceled")
    [final] = follow(gateway, task_id)
    assert gateway.stream(stream_event(SIGNED, task_id, final["id"])) == (204, None)


@pytest.mark.rule("13.stream.wait")
def test_a_response_without_events_is_a_keepalive(gateway: Gateway, task_id: str) -> None:
    [pending] = follow(gateway, task_id)
    status, content = gateway.stream(stream_event(SIGNED, task_id, pending["id"]))
    assert (status, content) == (200, "retry: 300\n\n: keepalive\n\n")


@pytest.mark.rule("13.stream.wait")
def test_a_buffered_response_waits_as_long_as_between_two_keepalives(gateway: Gateway, task_id: str) -> None:
    [pending] = follow(gateway, task_id)
    clock = FakeClock()
    streams = stream_routes(HttpServices(settings_with(gateway.environ, gateway.mesh), clock, TELEMETRY))
    response = answer(stream_event(SIGNED, task_id, pending["id"]), streams, at(0), TELEMETRY.log)
    assert response["body"].endswith(": keepalive\n\n")
    assert clock.seconds == pytest.approx(15.0)


def test_a_cursor_may_be_in_the_query(gateway: Gateway, task_id: str) -> None:
    [pending] = follow(gateway, task_id)
    status, content = gateway.stream(stream_event(SIGNED, task_id, last_event_id=pending["id"]))
    assert (status, events_of(content)) == (200, [])


def test_an_unreadable_cursor_is_answered_with_a_snapshot(gateway: Gateway, task_id: str) -> None:
    report(gateway, task_id, "received", 1)
    for unreadable in ("17", "x" * 5000):
        [snapshot] = follow(gateway, task_id, unreadable)
        assert (snapshot["event"], snapshot["data"]["snapshot"]) == ("status", True)
        assert snapshot["data"]["progress_percent"] == 30


def test_tasks_of_other_owners_do_not_exist(gateway: Gateway, task_id: str) -> None:
    for route in (SIGNED, TOKEN, "GET /envelopes/{id}/stream", "GET /jobs/{id}/stream"):
        assert gateway.stream(stream_event(route, task_id, iam=BOB))[0] == 404
        assert gateway.stream(stream_event(route, "unknown"))[0] == 404
        assert gateway.stream(stream_event(route, task_id, iam=None))[0] == 403


def test_an_answer_ends_before_it_is_too_long(gateway: Gateway, task_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_stream, "MAX_RESPONSE_BYTES", 700)
    publish(gateway, task_id, *range(9))
    received = follow(gateway, task_id)
    assert 1 < len(received) < 9
    while more := follow(gateway, task_id, received[-1]["id"]):
        received += more
    assert [each["data"]["sequence"] for each in received if each["event"] == "partial"] == list(range(9))


def test_the_text_of_an_event_survives_any_json() -> None:
    text = event_text("final", "1.0.f.100.0..", b'{"a":\n"\xc3\xa4"\r,\r\n"b": 1}')
    assert text == 'event: final\nid: 1.0.f.100.0..\ndata: {"a":\ndata: "ä"\ndata: ,\ndata: "b": 1}\n\n'
    assert events_of(text)[0]["data"] == {"a": "ä", "b": 1}


# --- tokens


def token_of(gateway: Gateway, task_id: str, now: datetime | None = None) -> str:
    status, content = gateway.stream(stream_event(TOKEN, task_id), now)
    assert status == 201
    return str(content["token"])


@pytest.mark.rule("13.stream-token")
def test_a_token_opens_the_stream_of_its_task(gateway: Gateway, task_id: str) -> None:
    status, content = gateway.stream(stream_event(TOKEN, task_id))
    assert status == 201
    address = urlsplit(content["url"])
    assert (address.scheme, address.netloc) == ("https", "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com")
    assert address.path == f"/api/v1/mesh/{task_id}/stream"
    assert parse_qs(address.query) == {"token": [content["token"]]}
    assert content["expires_at"] == "2026-11-20T10:00:00.000000Z"
    assert len(content["token"]) < 60
    status, text = gateway.stream(stream_event(OPEN, task_id, iam=None, token=content["token"]))
    assert (status, events_of(text)[0]["data"]["status"]) == (200, "pending")


def test_pages_of_any_origin_may_read_what_a_token_opens(gateway: Gateway, task_id: str) -> None:
    streams = stream_routes(HttpServices(settings_with(gateway.environ, gateway.mesh), FakeClock(), TELEMETRY))
    event = stream_event(OPEN, task_id, iam=None, token=token_of(gateway, task_id))
    opened = answer(event, streams, at(0), TELEMETRY.log)
    assert opened["headers"]["access-control-allow-origin"] == "*"
    signed = answer(stream_event(SIGNED, task_id), streams, at(0), TELEMETRY.log)
    assert "access-control-allow-origin" not in signed["headers"]


@pytest.mark.rule("13.stream-token")
def test_a_token_opens_nothing_else_and_expires(gateway: Gateway, task_id: str) -> None:
    other = str(gateway.api(signed_by(with_body(recorded_event("start-task")), ALICE))[1]["id"])
    token = token_of(gateway, task_id)
    end, _, code = token.partition(".")
    forged = (
        "", "x", token[:-1], token + "A", f"{int(end) - 1}.{code}", f"{int(end) + 1}.{code}", f"{int(end) + 10**6}.{code}",
        f"{end}.{'A' * 43}", f"{end}.{code[::-1]}", f"9{end}.{code}",
    )  # fmt: skip
    for wrong in forged:
        status, content = gateway.stream(stream_event(OPEN, task_id, iam=None, token=wrong))
        assert (status, content["error"]["field"]) == (403, "token"), wrong
    assert gateway.stream(stream_event(OPEN, task_id, iam=None))[0] == 403
    assert gateway.stream(stream_event(OPEN, other, iam=None, token=token))[0] == 403
    assert gateway.stream(stream_event(SIGNED, task_id, iam=None, token=token))[0] == 403
    assert gateway.stream(stream_event(OPEN, task_id, iam=None, token=token), at(3599))[0] == 200
    assert gateway.stream(stream_event(OPEN, task_id, iam=None, token=token), at(3600))[0] == 403


def test_a_token_holds_across_midnight(gateway: Gateway, task_id: str) -> None:
    late = datetime.fromisoformat("2026-11-20T23:30:00+00:00")
    token = token_of(gateway, task_id, late)
    assert gateway.stream(stream_event(OPEN, task_id, iam=None, token=token), late + timedelta(minutes=59))[0] == 200


def test_another_key_gives_other_tokens() -> None:
    ends_at = stream_tokens.expiry(at(0))
    token = stream_tokens.sign(b"k", "t", ends_at)
    stream_tokens.verify(b"k", token, "t", ends_at)
    with pytest.raises(ApiError):
        stream_tokens.verify(b"l", token, "t", ends_at)
    labels = {stream_tokens.key_label(mesh, at(days * 86400)) for mesh in ("a", "b") for days in (0, 1)}
    assert len(labels) == 4


def test_without_the_secret_the_answer_is_503(gateway: Gateway, task_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    token = token_of(gateway, task_id)

    def throttled(_: KeyItems) -> bytes:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "GetItem")

    def missing(_: KeyItems) -> bytes:
        raise MissingSecretError("not yet")

    for failing in (throttled, missing):
        monkeypatch.setattr(KeyItems, "token_secret", failing)
        for event in (stream_event(TOKEN, task_id), stream_event(OPEN, task_id, iam=None, token=token)):
            status, content = gateway.stream(event)
            assert (status, content["error"]["code"]) == (503, "unavailable")


def test_forged_tokens_cause_no_reads(gateway: Gateway, task_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process reads the secret once, so a forged token causes no further read."""
    reads = 0

    def counted(_: KeyItems) -> bytes:
        nonlocal reads
        reads += 1
        return b"secret"

    monkeypatch.setattr(KeyItems, "token_secret", counted)
    streams = stream_routes(HttpServices(settings_with(gateway.environ, gateway.mesh), FakeClock(), TELEMETRY))
    end = int(stream_tokens.expiry(at(0)).timestamp())
    for number in range(20):
        event = stream_event(OPEN, task_id, iam=None, token=f"{end - number}.{'A' * 43}")
        assert answer(event, streams, at(0), TELEMETRY.log)["statusCode"] == 403
    assert reads == 1


# --- legacy formats


@pytest.mark.rule("14.api.streams")
def test_a_stream_in_the_legacy_envelope_format(gateway: Gateway, task_id: str) -> None:
    report(gateway, task_id, "received", 1)
    publish(gateway, task_id, 0)
    report(gateway, task_id, "failed", 4, data={"error": {"type": "ValueError", "message": "no"}})
    received = follow(gateway, task_id, route="GET /envelopes/{id}/stream")
    assert [(each["event"], each["data"]["status"], each["data"]["progress_percent"]) for each in received] == [
        ("status", "running", 30), ("final", "failed", 30),
    ]  # fmt: skip
    assert received[0]["data"]["current_actor_idx"] == 0
    assert received[0]["data"]["route"] == {"actors": ["inspect-dataset"], "current": 0}
    assert received[1]["data"]["error"] == "no"
    assert gateway.stream(stream_event("GET /envelopes/{id}/stream", task_id, received[-1]["id"]))[0] == 204


@pytest.mark.rule("14.api.streams")
def test_a_stream_in_the_legacy_job_format(gateway: Gateway, task_id: str) -> None:
    report(gateway, task_id, "completed", 1)
    report(gateway, task_id, "succeeded", 4, data={"result": 7})
    received = follow(gateway, task_id, route="GET /jobs/{id}/stream")
    assert [(each["event"], each["data"]["status"]) for each in received] == [
        ("status", "Running"), ("status", "Running"), ("status", "Running"), ("final", "Succeeded"),
    ]  # fmt: skip
    assert received[-1]["data"]["result"] == 7


def test_the_entry_point_builds_itself(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    settings_with(gateway.environ, gateway.mesh)
    monkeypatch.setattr(routes.stream, "_started", None)
    assert routes.stream(stream_event(SIGNED, "unknown"), None)["statusCode"] == 404
