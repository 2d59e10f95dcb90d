"""Following tasks by Server-Sent Events (`protocol §13`, `GET …/events`, stream-token; `§14`)."""

import json
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace as changed

from asya.gateway.http.router import answer
from asya.gateway.streams import routes as gateway_stream
from asya.gateway.streams import tokens, wiring
from asya.gateway.streams.sse import event as event_text
from asya.gateway.streams.token_keys import TokenKeys
from asya.gateway.streams.wiring import build_streams
from asya.messaging.aws import clients
from asya.messaging.aws.telemetry import Telemetry
from asya.protocol.api_errors import ApiError
from tests.doubles.gateway_functions import (
    ALICE,
    BOB,
    FUNCTION,
    MESH,
    Event,
    Gateway,
    asking,
    by,
    calling,
    recorded,
    report,
    settings_with,
)
from tests.doubles.streams import Clock
from tests.doubles.tasks import at

SIGNED = "GET /api/v1/mesh/{id}/events"
OPEN = "GET /api/v1/mesh/{id}/stream"
TOKEN = "POST /api/v1/mesh/{id}/stream-token"
TELEMETRY = Telemetry("flights", "test")
Told = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def with_operators(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin",))


@pytest.fixture
def task_id(gateway: Gateway) -> str:
    """A task of Alice's."""
    return str(gateway.api(by(asking(recorded("start-task")), ALICE))[1]["id"])


def events_of(text: object) -> Told:
    """The events of a stream's text, as an EventSource reads them."""
    found: Told = []
    for block in text.split("\n\n") if isinstance(text, str) else ():
        fields: dict[str, list[str]] = {}
        for line in block.splitlines():
            name, _, value = line.partition(": ")
            fields.setdefault(name, []).append(value)
        if "data" in fields:
            data = json.loads("\n".join(fields["data"]))
            found.append({"event": fields["event"][0], "id": fields["id"][0], "data": data})
    return found


def asked(route: str, task_id: str, last: str | None = None, iam: dict[str, str] | None = ALICE, **query: str) -> Event:
    event = by(calling(route, None, None, id=task_id, **query), iam)
    return event | {"headers": event["headers"] | ({"last-event-id": last} if last is not None else {})}


def follow(gateway: Gateway, task_id: str, last: str | None = None, route: str = SIGNED) -> Told:
    status, content = gateway.stream(asked(route, task_id, last))
    assert status == 200
    return events_of(content)


def say(gateway: Gateway, task_id: str, *numbers: int) -> None:
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
    answer = gateway.ingest(by(recorded("report-events"), FUNCTION) | {"body": json.dumps(body)})
    assert answer[1]["items"][0]["status"] == 204


# --- the stream


@pytest.mark.rule("13.stream")
def test_a_task_is_followed_to_its_end_across_connections(gateway: Gateway, task_id: str) -> None:
    seen = follow(gateway, task_id)
    assert [(each["event"], each["data"]["status"]) for each in seen] == [("status", "pending")]
    report(gateway, task_id, "received", 1)
    say(gateway, task_id, 0, 1)
    seen += follow(gateway, task_id, seen[-1]["id"])
    report(gateway, task_id, "completed", 3)
    report(gateway, task_id, "succeeded", 4, data={"result": {"n": 1}}, position=1)
    seen += follow(gateway, task_id, seen[-1]["id"])
    assert [(each["event"], each["data"].get("step"), each["data"].get("sequence")) for each in seen[1:]] == [
        ("status", "received", None), ("partial", None, 0), ("partial", None, 1),
        ("status", "processing", None), ("status", "completed", None), ("final", None, None),
    ]  # fmt: skip
    assert seen[2]["data"]["data"] == {"n": 0}
    final = seen[-1]["data"]
    assert final == gateway.api(calling("GET /api/v1/mesh/{id}", ALICE, id=task_id))[1]
    assert final["result"] == {"n": 1}


@pytest.mark.rule("13.stream")
def test_who_has_seen_the_end_is_told_not_to_come_back(gateway: Gateway, task_id: str) -> None:
    report(gateway, task_id, "canceled")
    [final] = follow(gateway, task_id)
    assert gateway.stream(asked(SIGNED, task_id, final["id"])) == (204, None)


@pytest.mark.rule("13.stream.wait")
def test_without_news_an_answer_keeps_the_connection_in_mind(gateway: Gateway, task_id: str) -> None:
    [pending] = follow(gateway, task_id)
    status, content = gateway.stream(asked(SIGNED, task_id, pending["id"]))
    assert (status, content) == (200, "retry: 300\n\n: keepalive\n\n")


def test_programs_may_say_in_the_query_what_they_have_seen(gateway: Gateway, task_id: str) -> None:
    [pending] = follow(gateway, task_id)
    status, content = gateway.stream(asked(SIGNED, task_id, last_event_id=pending["id"]))
    assert (status, events_of(content)) == (200, [])


def test_an_id_that_nobody_can_read_is_answered_with_how_things_are(gateway: Gateway, task_id: str) -> None:
    report(gateway, task_id, "received", 1)
    for unreadable in ("17", "x" * 5000):
        [snapshot] = follow(gateway, task_id, unreadable)
        assert (snapshot["event"], snapshot["data"]["snapshot"]) == ("status", True)
        assert snapshot["data"]["progress_percent"] == 30


def test_somebody_elses_task_is_not_there(gateway: Gateway, task_id: str) -> None:
    for route in (SIGNED, TOKEN, "GET /envelopes/{id}/stream", "GET /jobs/{id}/stream"):
        assert gateway.stream(asked(route, task_id, iam=BOB))[0] == 404
        assert gateway.stream(asked(route, "nobodys"))[0] == 404
        assert gateway.stream(asked(route, task_id, iam=None))[0] == 403


def test_an_answer_ends_before_it_is_too_long(gateway: Gateway, task_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_stream, "MAX_RESPONSE_BYTES", 700)
    say(gateway, task_id, *range(9))
    seen = follow(gateway, task_id)
    assert 1 < len(seen) < 9
    while more := follow(gateway, task_id, seen[-1]["id"]):
        seen += more
    assert [each["data"]["sequence"] for each in seen if each["event"] == "partial"] == list(range(9))


def test_the_text_of_an_event_survives_any_json() -> None:
    text = event_text("final", "1.0.f.100.0..", b'{"a":\n"\xc3\xa4"\r,\r\n"b": 1}')
    assert text == 'event: final\nid: 1.0.f.100.0..\ndata: {"a":\ndata: "ä"\ndata: ,\ndata: "b": 1}\n\n'
    assert events_of(text)[0]["data"] == {"a": "ä", "b": 1}


# --- tokens


def token_of(gateway: Gateway, task_id: str, now: datetime | None = None) -> str:
    status, content = gateway.stream(asked(TOKEN, task_id), now)
    assert status == 201
    return str(content["token"])


@pytest.mark.rule("13.stream-token")
def test_a_token_opens_the_stream_of_its_task(gateway: Gateway, task_id: str) -> None:
    status, content = gateway.stream(asked(TOKEN, task_id))
    assert status == 201
    address = urlsplit(content["url"])
    assert (address.scheme, address.netloc) == ("https", "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com")
    assert address.path == f"/api/v1/mesh/{task_id}/stream"
    assert parse_qs(address.query) == {"token": [content["token"]]}
    assert content["expires_at"] == "2026-11-20T10:00:00.000000Z"
    assert len(content["token"]) < 60
    status, text = gateway.stream(asked(OPEN, task_id, iam=None, token=content["token"]))
    assert (status, events_of(text)[0]["data"]["status"]) == (200, "pending")


def test_pages_of_any_origin_may_read_what_a_token_opens(gateway: Gateway, task_id: str) -> None:
    streams = build_streams(settings_with(gateway.environ, gateway.mesh), TELEMETRY, Clock())
    event = asked(OPEN, task_id, iam=None, token=token_of(gateway, task_id))
    opened = answer(event, streams.routes(at(0)), TELEMETRY.log)
    assert opened["headers"]["access-control-allow-origin"] == "*"
    signed = answer(asked(SIGNED, task_id), streams.routes(at(0)), TELEMETRY.log)
    assert "access-control-allow-origin" not in signed["headers"]


@pytest.mark.rule("13.stream-token")
def test_a_token_opens_nothing_else_and_not_for_ever(gateway: Gateway, task_id: str) -> None:
    other = str(gateway.api(by(asking(recorded("start-task")), ALICE))[1]["id"])
    token = token_of(gateway, task_id)
    end, _, code = token.partition(".")
    forged = (
        "", "x", token[:-1], token + "A", f"{int(end) - 1}.{code}", f"{int(end) + 1}.{code}", f"{int(end) + 10**6}.{code}",
        f"{end}.{'A' * 43}", f"{end}.{code[::-1]}", f"9{end}.{code}",
    )  # fmt: skip
    for wrong in forged:
        status, content = gateway.stream(asked(OPEN, task_id, iam=None, token=wrong))
        assert (status, content["error"]["field"]) == (403, "token"), wrong
    assert gateway.stream(asked(OPEN, task_id, iam=None))[0] == 403
    assert gateway.stream(asked(OPEN, other, iam=None, token=token))[0] == 403
    assert gateway.stream(asked(SIGNED, task_id, iam=None, token=token))[0] == 403
    assert gateway.stream(asked(OPEN, task_id, iam=None, token=token), at(3599))[0] == 200
    assert gateway.stream(asked(OPEN, task_id, iam=None, token=token), at(3600))[0] == 403


def test_a_token_holds_across_midnight(gateway: Gateway, task_id: str) -> None:
    late = datetime.fromisoformat("2026-11-20T23:30:00+00:00")
    token = token_of(gateway, task_id, late)
    assert gateway.stream(asked(OPEN, task_id, iam=None, token=token), late + timedelta(minutes=59))[0] == 200


def test_another_key_gives_other_tokens() -> None:
    ends_at = tokens.expiry(at(0))
    token = tokens.sign(b"k", "t", ends_at)
    tokens.verify(b"k", token, "t", ends_at)
    with pytest.raises(ApiError):
        tokens.verify(b"l", token, "t", ends_at)
    labels = {tokens.key_label(mesh, at(days * 86400)) for mesh in ("a", "b") for days in (0, 1)}
    assert len(labels) == 4


def test_without_kms_nobody_is_let_in_and_told_to_try_again(
    gateway: Gateway, task_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = token_of(gateway, task_id)

    def throttled(**_: object) -> None:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "GenerateMac")

    monkeypatch.setattr(clients.kms(), "generate_mac", throttled)
    for event in (asked(TOKEN, task_id), asked(OPEN, task_id, iam=None, token=token)):
        status, content = gateway.stream(event)
        assert (status, content["error"]["code"]) == (503, "unavailable")


def test_forged_tokens_cost_no_call(gateway: Gateway, task_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the day has been asked for; whoever comes with a forgery is refused without asking again."""
    calls: list[bytes] = []
    made = TokenKeys._derive

    def counted(self: TokenKeys, label: bytes) -> bytes:
        calls.append(label)
        return made(self, label)

    monkeypatch.setattr(TokenKeys, "_derive", counted)
    streams = build_streams(settings_with(gateway.environ, gateway.mesh), TELEMETRY, Clock())
    end = int(tokens.expiry(at(0)).timestamp())
    for number in range(20):
        event = asked(OPEN, task_id, iam=None, token=f"{end - number}.{'A' * 43}")
        assert answer(event, streams.routes(at(0)), TELEMETRY.log)["statusCode"] == 403
    assert len(calls) == 1


# --- older generations


@pytest.mark.rule("14.api.streams")
def test_an_envelope_is_followed_in_the_first_generations_words(gateway: Gateway, task_id: str) -> None:
    report(gateway, task_id, "received", 1)
    say(gateway, task_id, 0)
    report(gateway, task_id, "failed", 4, data={"error": {"type": "ValueError", "message": "no"}})
    seen = follow(gateway, task_id, route="GET /envelopes/{id}/stream")
    assert [(each["event"], each["data"]["status"], each["data"]["progress_percent"]) for each in seen] == [
        ("status", "running", 30), ("final", "failed", 30),
    ]  # fmt: skip
    assert seen[0]["data"]["current_actor_idx"] == 0
    assert seen[0]["data"]["route"] == {"actors": ["inspect-dataset"], "current": 0}
    assert seen[1]["data"]["error"] == "no"
    assert gateway.stream(asked("GET /envelopes/{id}/stream", task_id, seen[-1]["id"]))[0] == 204


@pytest.mark.rule("14.api.streams")
def test_a_job_is_followed_in_the_second_generations_words(gateway: Gateway, task_id: str) -> None:
    report(gateway, task_id, "completed", 1)
    report(gateway, task_id, "succeeded", 4, data={"result": 7})
    seen = follow(gateway, task_id, route="GET /jobs/{id}/stream")
    assert [(each["event"], each["data"]["status"]) for each in seen] == [
        ("status", "Running"), ("status", "Running"), ("status", "Running"), ("final", "Succeeded"),
    ]  # fmt: skip
    assert seen[-1]["data"]["result"] == 7


def test_the_entry_point_is_cached_once(gateway: Gateway) -> None:
    settings_with(gateway.environ, gateway.mesh)
    assert wiring.stream(asked(SIGNED, "nobodys"), None)["statusCode"] == 404
    assert wiring._routes_and_telemetry() is wiring._routes_and_telemetry()
