"""A caller of the gateway, who may also send to the queue of one light actor, attacks the tasks of others.

Each row is one attempt. Alice's tasks run beside it and must not change (`docs/security.md`, callers and queue senders).
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle
from typing import Any
from urllib.parse import quote

import pytest

from asya.api_call import ApiCall
from asya.gateway.call_table import CALLS
from asya.protocol import ids
from asya.protocol.names import queue_name
from asya.testing import Mesh
from asya.testing.deployment import TEST_USER
from asya.testing.dynamo.tables import copied
from asya.testing.services.functions import ACCOUNT

MESH = """
namespace: bank
crew: {routable: [x-checkpoint, x-fan-in, x-pause]}
code: handlers
operators: ["arn:aws:iam::*:user/test"]
gateway: {starts: [work]}
actors:
  work: {handler: bank.work, keep_input: true, can_send_to: [approve, nap, split]}
  split: {handler: bank.split, can_send_to: [work]}
  payout: {handler: bank.payout}
  approve:
    kind: pause
    can_send_to: [payout]
    pause: {prompt: "Pay it?", callback: true, fields: [{name: approved, type: boolean}], show: [/amount]}
  nap: {kind: wait, wait: {until: /until}}
tools:
  pay: {description: Pays, route: [work, approve, payout], input_schema: {type: object}}
"""
HANDLERS = """
from asya import fan_out

def work(payload):
    return payload

def split(payload):
    return fan_out(payload["items"], to=["work"], into="/sums")

def payout(payload):
    return {"paid": payload}
"""
ALICE, BOB, EVE = "AIDAALICE", "AIDABOB", "AIDAEVE"
USERS = {ALICE: f"arn:aws:iam::{ACCOUNT}:user/alice", EVE: f"arn:aws:iam::{ACCOUNT}:user/eve", "AIDATEST": TEST_USER}
UNKNOWN = "7d0b26a1-5ad5-4dd8-9d3f-0d6b0c0fbb6e"
Answer = tuple[int, str]


@dataclass(frozen=True)
class Bank:
    """The mesh, with tasks of Alice that are at rest: one is paused, one waits, one has failed, and one has fanned out.

    Attributes:
        paused: the id that the gateway gave out; she has chosen those of `HERS`.
    """

    mesh: Mesh
    paused: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.paused, *HERS)

    def call(self, method: str, path: str, body: Any = None, *, by: str = EVE, **headers: str) -> Answer:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.mesh.cloud.request(method, path, content, named, user_arn=USERS.get(by, ""), user_id=by)
        self.mesh.cloud.finish()
        return answer["statusCode"], answer.get("body") or ""

    def put(self, body: str, by: str = EVE) -> None:
        self.mesh.cloud.queues.send(queue_name("bank", "work"), body, sender=None, by=by)

    def kept(self) -> dict[str, Any]:
        """All items of tables, and all objects, by their keys."""
        tables = self.mesh.cloud.tables.tables
        items = {f"{name} {key}": copied(item) for name, table in tables.items() for key, item in table.items.items()}
        return items | dict(self.mesh.objects)

    def of_alice(self) -> dict[str, Any]:
        """The items and objects that name her or one of her tasks."""
        named = (ALICE, *self.ids)
        return {key: value for key, value in self.kept().items() if any(name in f"{key} {value}" for name in named)}

    def changed(self, before: dict[str, Any]) -> dict[str, Any]:
        """What is now at the keys of things that have changed."""
        kept = self.kept()
        return {key: kept.get(key) for key, value in before.items() if kept.get(key) != value}

    def left(self) -> list[str]:
        """The messages that no function has taken, those in dead-letter queues included."""
        queues = self.mesh.cloud.queues.queues.values()
        return [f"{queue.name}: {message.body[:80]}" for queue in queues for message in queue.messages]


HERS = ("alice-waits", "alice-failed", "alice-set")


def message(own_id: str, *, curr: str = "work", then: Iterable[str] = (), payload: Any = 1, **more: Any) -> str:
    return json.dumps({"id": own_id, "route": {"prev": [], "curr": curr, "next": [*then]}, "payload": payload} | more)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    path = tmp_path_factory.mktemp("bank")
    (path / "handlers").mkdir()
    (path / "handlers" / "bank.py").write_text(HANDLERS)
    (path / "mesh.yaml").write_text(MESH)
    new = Bank(Mesh(path / "mesh.yaml"))
    call = {"name": "pay", "arguments": {"amount": 7}}
    status, answer = new.call("POST", "/tools/call", call, by=ALICE, prefer="wait=0")
    assert status == 202
    until = (new.mesh.now + timedelta(days=20)).isoformat()
    new.put(message("alice-waits", then=["nap"], payload={"until": until}), by=ALICE)
    new.put(message("alice-failed", then=["nowhere"]), by=ALICE)
    new.put(message("alice-set", then=["split", "x-fan-in"], payload={"items": [{"n": 1}, {"n": 2}]}), by=ALICE)
    new.mesh.travel(minutes=1)
    return Bank(new.mesh, json.loads(answer)["id"])


@pytest.fixture(scope="module")
def before(bank: Bank) -> dict[str, Any]:
    return bank.of_alice()


# --- messages on the queue ---------------------------------------------------------------------------------------


def as_an_id_of_others(bank: Bank) -> Iterator[str]:
    for other in bank.ids:
        for own_id in (
            other,
            other.upper(),
            f"{other}-1",
            ids.child_id(other, 0, 1, 1),
            ids.hook_id(other, 0, "audit"),
        ):
            yield message(own_id, payload="forged")


def as_a_key_of_a_table(_: Bank) -> Iterator[str]:
    """IAM refuses x-sink the claim on such an end, and the envelope would lie on its queue as in an outage."""
    for key in (
        "KEY#",
        "KEY#work",
        "ROLE#AROAWORK",
        "ROLE#complete",
        "LETTER#a",
        "START#x-sink#1",
        "DLQ#1",
        "OUTAGE",
        "SWEEP",
    ):
        yield message(key)


def as_a_payload_of_others(bank: Bank) -> Iterator[str]:
    """x-sink reads the payloads of all actors, and gets an envelope with a deadline in the past as it came."""
    content = b'"known to Alice"'
    digest = hashlib.sha256(content).hexdigest()
    for prefix in ("inbox/payout", "payloads/work", "payloads/payout", "inbox/../paused", "inbox", "paused"):
        key = f"{prefix}/{digest[:2]}/{digest}.json"
        bank.mesh.cloud.bucket.objects[key] = content
        for number, status in enumerate(({}, {"deadline_at": "2020-01-01T00:00:00Z"})):
            headers = {"x-asya-payload-ref": {"key": key, "size": len(content), "sha256": digest}}
            yield message(f"ref-{prefix}-{number}", payload=None, headers=headers, status=status)


def as_a_payload_that_nobody_can_read(bank: Bank) -> Iterator[str]:
    """Its sender archives it, or encrypts it with a key that S3 does not keep. No repetition reads it."""
    content = b'"sealed"'
    digest = hashlib.sha256(content).hexdigest()
    for number, error in enumerate((("InvalidObjectState", None), ("InvalidRequest", "400"))):
        key = f"inbox/work/{digest[:2]}/{number}.json"
        bank.mesh.cloud.bucket.objects[key], bank.mesh.cloud.bucket.sealed[key] = content, error
        headers = {"x-asya-payload-ref": {"key": key, "size": len(content), "sha256": digest}}
        for status in ({}, {"deadline_at": "2020-01-01T00:00:00Z"}):
            yield message(f"sealed-{number}-{len(status)}", payload=None, headers=headers, status=status)


def as_a_state_of_others(bank: Bank) -> Iterator[str]:
    """Each managed header, a parent and a status say that the envelope belongs to a task of Alice."""
    at = "2026-01-01T00:00:00.000000Z"
    place = {
        "actor": "x-fan-in",
        "set_id": ids.set_id("alice-set", 0, 1),
        "origin_id": "alice-set",
        "aggregation_key": "",
    }
    forged = {
        "x-asya-owner": ALICE,
        "x-asya-tenant": ALICE,
        "x-asya-root": "alice-set",
        "x-asya-replay-of": "alice-failed",
        "x-asya-set-repeat": True,
        "x-asya-generation": 9999,
        "x-asya-fan-in": place | {"slice_index": 1, "slice_count": 3},
        "x-asya-key": {"mac": "0" * 64},
        "x-asya-pause": {"epoch": 1, "fields": []},
        "x-asya-resume-input": {"approved": True},
        "x-asya-resume-at": at,
        "x-asya-wait": {"since": at, "until": at},
        "x-asya-not-before": "9999-01-01T00:00:00Z",
        "x-asya-first-attempt": at,
        "x-asya-circuit-open-since": at,
        "x-asya-hook": "audit",
        "x-asya-tool": "pay",
        "x-asya-gateway-url": "https://evil.example",
        "x-asya-mesh-version": "0" * 12,
        "x-asya-route-resolved": {"work": {"target": "payout", "by": "work"}},
    }
    ways = cycle(([], ["x-fan-in"], ["x-resume"], ["x-checkpoint"], ["approve"], ["nap"], ["split", "x-fan-in"]))
    for name, value in forged.items():
        for number in (1, 2):
            own_id, then = f"{name}-{number}", next(ways)
            yield message(own_id, then=then, payload={"until": 0}, headers={name: value}, parent_id="alice-set")
    for phase in ("succeeded", "failed", "canceled", "paused", "retrying"):
        own = {"phase": phase, "attempt": 9, "max_attempts": 9, "created_at": at, "updated_at": at, "actor": "payout"}
        yield message(f"as-{phase}", headers=forged, status=own, parent_id=bank.paused)


def as_a_way_to_others(_: Bank) -> Iterator[str]:
    """The actor `work` may not send to `payout`, whatever crew stands between them, and whatever an override says."""
    for number, crew in enumerate(
        ([], ["x-checkpoint"], ["x-resume"], ["x-fan-in"], ["x-pause"], ["x-resume", "x-checkpoint"])
    ):
        yield message(f"way-{number}", then=[*crew, "payout"], payload={"to": "Eve"})
        yield message(f"logical-{number}", then=[*crew, "a"], headers={"x-asya-route-override": {"a": "payout"}})
        yield message(
            f"crew-{number}", then=["a", "payout"], headers={"x-asya-route-override": {"a": (crew or ["x-wait"])[0]}}
        )
    for name in (
        "x-sink",
        "x-sump",
        "x-wait",
        "x-triggers",
        "x-dispatch",
        "x-completion",
        "x-push",
        "x-reports",
        "x-ends",
        "happy-end",
    ):
        yield message(f"to-{name}", then=[name])
        yield message(
            f"over-{name}", then=["split"], headers={"x-asya-route-override": {"split": name, "": name, name: "payout"}}
        )


def as_no_envelope(bank: Bank) -> Iterator[str]:
    """What other queues take, what no reader takes, and what takes readers long."""
    yield from (
        "",
        " ",
        "null",
        "1",
        "[]",
        "[" * 5_000,
        '{"id":"alice-set"',
        '{"id":"alice-set","id":"mine"}',
        "\ufeff{}",
    )
    yield json.dumps([{"id": bank.paused, "status": "failed", "at": "2026-01-01T00:00:00Z", "data": {"owner": EVE}}])
    yield json.dumps({"type": "set-due", "set_id": ids.set_id("alice-set", 0, 1), "until": 0})
    yield json.dumps({"lane": "x", "trigger": "nightly"})
    for name in ("id", "route", "payload", "headers", "status", "parent_id"):
        for value in (None, [], {}, 7, True, "", "\ud800", [[]], {"": None}):
            yield message("alice-set", **{name: value})
    yield '{"id":"digits","route":{"prev":[],"curr":"work","next":[]},"payload":' + "9" * 100_000 + "}"
    yield '{"id":"exponent","route":{"prev":[],"curr":"work","next":[]},"payload":[1e999999999,1e-999999999]}'
    for depth in (900, 960, 1_020, 5_000):
        for opened, closed in (("[", "]"), ('{"a":', "}")):
            deep = opened * depth + "1" + closed * depth
            for place in ('"payload":1,"headers":{"h":%s}', '"payload":1,"more":%s', '"payload":%s'):
                yield '{"id":"deep","route":{"prev":[],"curr":"work","next":["split"]},' + place % deep + "}"


def as_a_large_envelope(_: Bank) -> Iterator[str]:
    word = "A" * 16_000
    yield message("name", then=[word])
    yield message("current", curr=word)
    yield message("current in bytes", curr="\U0001f600" * 60)
    yield message("header", headers={word: "x"}).replace('"x"', "1e9999999")
    yield json.dumps({"id": "hops", "route": {"prev": [""] * 200_000, "curr": "work", "next": []}, "payload": 1})
    yield message("letters", then=["é" * 90_000])
    yield message("trace", headers={"traceparent": word, "tracestate": "x" * 500_000})
    yield message("members", then=["split"], **{f"own-{number}": 1 for number in range(20_000)})
    yield message("payload", payload="\uffff" * 150_000)


def as_an_odd_id(_: Bank) -> Iterator[str]:
    """An id is hostile as a name, as a file, as a part of an address, and as a line of a log or a terminal."""
    odd = (
        "..",
        ".",
        "/",
        "../alice-set",
        "alice-set/",
        "a\nb",
        "\x00",
        "\x1b[2J",
        "%2e%2e",
        "'; rm -rf ~; '",
        "=1+1",
        "\ufffe",
    )
    for own_id in (*odd, "é" * 128, "\U0001f600" * 64, " alice-set", "alice-set ", "ALICE-SET", "alice-set\u200b"):
        yield message(own_id, then=["split", "x-fan-in"], payload={"items": [1]})
        yield message(own_id, then=["nap"], payload={"until": 0})


def as_a_time(_: Bank) -> Iterator[str]:
    for time in (
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-23:59",
        "2026-13-01T00:00:00Z",
        "",
        "now",
    ):
        yield message(f"deadline {time}", status={"deadline_at": time})
        yield message(f"nap {time}", then=["nap"], payload={"until": time})
    for number in (0, -1e18, 1e300, 10**18, True):
        yield message(f"nap {number}", then=["nap"], payload={"until": number})


MESSAGES: dict[str, Callable[[Bank], Iterable[str]]] = {
    "ids of others, and what derives from them": as_an_id_of_others,
    "keys of tables as ids": as_a_key_of_a_table,
    "payloads of others": as_a_payload_of_others,
    "payloads that nobody can read": as_a_payload_that_nobody_can_read,
    "states of others": as_a_state_of_others,
    "ways to others": as_a_way_to_others,
    "no envelopes": as_no_envelope,
    "large envelopes": as_a_large_envelope,
    "odd ids": as_an_odd_id,
    "times": as_a_time,
}


@pytest.mark.rule("4.entry", "1.id.special", "4.claim-check.bad-reference", "11.metadata")
@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.slow
def test_a_message_changes_nothing_of_others(bank: Bank, before: dict[str, Any], name: str) -> None:
    """Nothing stays on a queue, and the message of somebody else among them does its way."""
    for number, body in enumerate(MESSAGES[name](bank)):
        bank.put(body)
        if not number:
            bank.put(message(f"bob beside {name}", payload="his"), by=BOB)
    bank.mesh.cloud.run_until_idle()
    assert bank.left() == []
    assert bank.changed(before) == {}
    read = [key for key, value in bank.kept().items() if "known to Alice" in str(value) and "results/" in key]
    assert read == []
    status, task = bank.call("GET", f"/api/v1/mesh/{quote(f'bob beside {name}')}", by="AIDATEST")
    assert (status, json.loads(task)["result"]) == (200, "his")


# --- calls of the gateway ----------------------------------------------------------------------------------------

BODIES: tuple[Any, ...] = (
    None,
    {},
    {"input": {"approved": True}},
    {"reason": "mine"},
    {"undo": True},
    {"hop": 0},
    {"force": True},
)


def about(call: ApiCall, task_id: str) -> str:
    """The path of a call about a task."""
    path = call.path.replace("{id}", quote(task_id, safe=""))
    return re.sub(r"\{\w+\}", "0", path)


OF_A_TASK = {call.route: call for call in CALLS if "{id}" in call.path and "backfills" not in call.path}


@pytest.mark.rule("13.owner", "13.operators")
@pytest.mark.parametrize("route", OF_A_TASK)
def test_a_call_about_a_task_of_others_is_answered_as_about_none(
    bank: Bank, before: dict[str, Any], route: str
) -> None:
    call = OF_A_TASK[route]
    for task_id in bank.ids:
        for body in BODIES if call.method != "GET" else (None,):
            unknown = f"{UNKNOWN}-{task_id}"
            status, answer = bank.call(call.method, about(call, task_id), body)
            expected = bank.call(call.method, about(call, unknown), body)
            assert (status, answer.replace(task_id, unknown)) == (expected[0], expected[1])
            assert status >= 400
    assert bank.changed(before) == {}


FOR_OPERATORS = {call.route: call for call in CALLS if call.rights == "operators"}


@pytest.mark.rule("13.operators")
@pytest.mark.parametrize("route", FOR_OPERATORS)
def test_a_call_of_operators_is_refused(bank: Bank, route: str) -> None:
    call = FOR_OPERATORS[route]
    report = {"id": bank.paused, "status": "failed", "at": "2026-01-01T00:00:00Z", "data": {"owner": ALICE}}
    for body in (None, report, [report]):
        status, answer = bank.call(call.method, about(call, bank.paused), body)
        assert status in (403, 404)  # a mesh without triggers has no calls of them
        assert bank.paused not in answer


def rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def said(task_id: str, **more: Any) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {}}], "taskId": task_id, **more}}


def about_a_tool(name: str, **more: Any) -> Callable[[str], tuple[str, dict[str, Any]]]:
    return lambda task: ("/mcp", rpc("tools/call", {"name": name, "arguments": {"id": task, **more}}))


MCP = {"mcp_protocol_version": "2025-11-25"}
AGENT_CALLS: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
    "GetTask": lambda task: ("/a2a", rpc("GetTask", {"id": task})),
    "CancelTask": lambda task: ("/a2a", rpc("CancelTask", {"id": task})),
    "SubscribeToTask": lambda task: ("/a2a", rpc("SubscribeToTask", {"id": task})),
    "SendMessage": lambda task: ("/a2a", rpc("SendMessage", said(task))),
    "SendStreamingMessage": lambda task: ("/a2a", rpc("SendStreamingMessage", said(task, contextId=task))),
    "a push configuration": lambda task: (
        "/a2a",
        rpc("CreateTaskPushNotificationConfig", {"taskId": task, "url": "https://evil.example/"}),
    ),
    "its push configurations": lambda task: ("/a2a", rpc("ListTaskPushNotificationConfigs", {"taskId": task})),
    "wait_for_task": about_a_tool("wait_for_task"),
    "cancel_task": about_a_tool("cancel_task"),
    "resume_task": about_a_tool("resume_task", input={"approved": True}),
}


@pytest.mark.rule("13.owner", "13.a2a.errors", "13.mcp.owner")
@pytest.mark.parametrize("name", AGENT_CALLS)
def test_an_agent_finds_no_task_of_others(bank: Bank, before: dict[str, Any], name: str) -> None:
    for task_id in bank.ids:
        unknown = f"{UNKNOWN}-{task_id}"
        path, body = AGENT_CALLS[name](task_id)
        headers = {"accept": "application/json", "prefer": "wait=0"} | (MCP if path == "/mcp" else {})
        _, answer = bank.call("POST", path, body, **headers)
        assert answer.replace(task_id, unknown) == bank.call("POST", path, AGENT_CALLS[name](unknown)[1], **headers)[1]
        assert '"error"' in answer or '"isError":true' in answer
    assert bank.changed(before) == {}


@pytest.mark.rule("13.mcp.owner", "13.mcp.pause")
def test_an_answer_to_a_question_of_others_answers_none(bank: Bank, before: dict[str, Any]) -> None:
    """The state with which a client repeats its request names the task, and nobody has signed it."""
    revision = "2026-07-28"
    headers = {"accept": "application/json", "mcp_protocol_version": revision, "mcp_method": "tools/call"}
    meta = {"io.modelcontextprotocol/protocolVersion": revision, "io.modelcontextprotocol/clientCapabilities": {}}
    since = json.loads(bank.call("GET", f"/api/v1/mesh/{bank.paused}", by=ALICE)[1])["pause"]["since"]
    found = []
    for state in (
        f"{bank.paused} {since}",
        f"{bank.paused} 2020-01-01T00:00:00Z",
        f"{UNKNOWN} {since}",
        bank.paused,
        "",
    ):
        params = {"name": "pay", "arguments": {}, "requestState": state, "_meta": meta}
        answers = {"pause": {"action": "accept", "content": {"approved": True}}}
        body = rpc("tools/call", params | {"inputResponses": answers})
        found.append(bank.call("POST", "/mcp", body, mcp_name="pay", prefer="wait=0", **headers)[1])
    assert all('"isError":true' in answer and "there is no task" in answer for answer in found)
    assert found[2] == found[0].replace(bank.paused, UNKNOWN)
    assert bank.changed(before) == {}


def a_start_elsewhere(bank: Bank) -> Iterator[Answer]:
    for actor in ("payout", "approve", "x-checkpoint", "x-sink", "x-reports", "../work", "work%2f..%2fpayout", ""):
        yield bank.call("POST", f"/api/v1/mesh?actor={actor}", {"payload": 1})


def a_start_with_more(bank: Bank) -> Iterator[Answer]:
    for more in (
        {"route": ["payout"]},
        {"next": ["payout"]},
        {"id": bank.paused},
        {"parent_id": bank.paused},
        {"status": {}},
        {"owner": ALICE},
    ):
        yield bank.call("POST", "/api/v1/mesh?actor=work", {"payload": 1} | more)
    for name, value in (("x-asya-route-override", {"work": "payout"}), ("x-asya-mesh-status", "off")):
        yield bank.call("POST", "/api/v1/mesh?actor=work", {"payload": 1, "headers": {name: value}})
    for timeout in (0, -1, 1e300, 31_622_401, "9"):
        yield bank.call("POST", "/api/v1/mesh?actor=work", {"payload": 1, "timeout": timeout})


def a_list_of_others(bank: Bank) -> Iterator[Answer]:
    for path in ("/api/v1/mesh", "/api/v1/operations/failures"):
        for query in (
            f"owner={ALICE}",
            "owner=",
            "limit=0&since=x",
            "error=",
            f"cursor={'A' * 3_000}",
            "cursor=%00",
            "since=9999-12-31T23:59:59-23:59",
        ):
            yield bank.call("GET", f"{path}?{query}")


def a_forged_token(bank: Bank) -> Iterator[Answer]:
    for token in ("", "x", "9999999999." + "A" * 43, "9999999999." + "_" * 43, "1.2", "%00", "A" * 9_000):
        yield bank.call("GET", f"/api/v1/mesh/{bank.paused}/stream?token={token}", by="")
        for method in ("GET", "POST"):
            yield bank.call(method, f"/callbacks?token={token}", {"input": {"approved": True}}, by="")


INSIDE = (
    *(
        "169.254.169.254",
        "127.0.0.1",
        "127.0.0.1:9001",
        "localhost",
        "a.localhost",
        "10.0.0.1",
        "100.64.0.1",
        "0.0.0.0",
    ),
    *("[::1]", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]"),
    *("metadata.internal", "me@public.example", "public.example:0"),
)


def a_notification_inside(bank: Bank) -> Iterator[Answer]:
    """A push configuration of a task of hers leads to where only the functions of the mesh come."""
    _, answer = bank.call("POST", "/tools/call", {"name": "pay", "arguments": {"amount": 1}}, prefer="wait=0")
    task_id = json.loads(answer)["id"]
    urls = [f"{scheme}://{host}/latest" for host in INSIDE for scheme in ("https", "http", "file", "gopher")]
    urls += ["http://public.example/", "https://public.example/\r\nhost: evil", "https:///x", "//public.example", "x"]
    for url in (*urls, "https://" + "a" * 3_000):
        config = {"taskId": task_id, "url": url}
        status, refused = bank.call("POST", "/a2a", rpc("CreateTaskPushNotificationConfig", config))
        yield (400 if '"error"' in refused else status), refused
    for secret in ("a\r\nhost: evil", "é", "a" * 5_000):
        config = {"taskId": task_id, "url": "https://public.example/", "token": secret}
        status, refused = bank.call("POST", "/a2a", rpc("CreateTaskPushNotificationConfig", config))
        yield (400 if '"error"' in refused else status), refused


REFUSED: dict[str, Callable[[Bank], Iterator[Answer]]] = {
    "a start elsewhere": a_start_elsewhere,
    "a start with more than its payload": a_start_with_more,
    "a list of others": a_list_of_others,
    "a forged token": a_forged_token,
    "a notification to an address inside": a_notification_inside,
}


@pytest.mark.rule("13.start.starts", "13.start.operators", "13.list.filters", "13.stream-token", "13.a2a.push.address")
@pytest.mark.parametrize("name", REFUSED)
def test_a_call_is_refused(bank: Bank, before: dict[str, Any], name: str) -> None:
    """None of the refusals is an error of the gateway (5xx), and none names a task of Alice."""
    answers = list(REFUSED[name](bank))
    assert {status for status, _ in answers} <= {400, 403, 404, 413}
    assert not [answer for _, answer in answers if "alice-" in answer or '"amount"' in answer]
    assert bank.changed(before) == {}


@pytest.mark.rule("13.list", "13.list.cursor")
def test_a_cursor_that_names_a_task_of_others_shows_none(bank: Bank) -> None:
    """The checksum of a cursor has no key, so a caller can forge one."""
    bank.put(message("eve-1"))
    bank.put(message("eve-2"))
    bank.mesh.cloud.run_until_idle()
    page = json.loads(bank.call("GET", "/api/v1/mesh?limit=1")[1])
    cursor = page["next_cursor"]
    digest = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[6:])[0]
    for key in (("9999", bank.paused), (f"2026#{ALICE}", "alice-set"), ("", ""), ("\x00", "\uffff"), ("~" * 900, "")):
        content = json.dumps([digest, *key], ensure_ascii=False, separators=(",", ":")).encode()
        forged = base64.urlsafe_b64encode(hashlib.sha256(content).digest()[:6] + content).decode().rstrip("=")
        status, answer = bank.call("GET", f"/api/v1/mesh?limit=1&cursor={forged}")
        assert status in (200, 400)
        assert {task["owner"] for task in json.loads(answer).get("items", ())} <= {EVE}


@pytest.mark.rule("13.start.idempotent", "13.mcp.cancel")
def test_a_key_of_others_names_another_task(bank: Bank, before: dict[str, Any]) -> None:
    """Idempotency keys, ids of messages, and ids of requests within a session belong to their caller."""
    call = {"name": "pay", "arguments": {"amount": 7}}
    body = rpc("tools/call", call)
    kept: dict[str, set[str]] = {ALICE: set(), EVE: set()}
    for who, found in kept.items():
        for path, given, headers in (
            ("/tools/call", call, {"idempotency_key": "k"}),
            ("/mcp", body, MCP | {"mcp_session_id": "s"}),
        ):
            answer = bank.call("POST", path, given, by=who, prefer="wait=0", accept="application/json", **headers)[1]
            found.update(re.findall(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f-]{21}", answer))
    assert all(kept.values())
    assert kept[ALICE].isdisjoint(kept[EVE])
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    bank.call("POST", "/mcp", note, accept="application/json", mcp_session_id="s", **MCP)
    bank.mesh.cloud.run_until_idle()
    states = {json.loads(bank.call("GET", f"/api/v1/mesh/{each}", by=ALICE)[1])["status"] for each in kept[ALICE]}
    assert states == {"paused"}
    assert bank.changed(before) == {}


@pytest.mark.rule("12.replay.place")
def test_a_replay_starts_nothing_where_its_caller_may_not(bank: Bank) -> None:
    """The route of a message names an actor that it has never been at, and the gateway sends the replay there."""
    late, override = {"deadline_at": "2020-01-01T00:00:00Z"}, {"x-asya-route-override": {"a": "payout"}}
    forged: dict[str, dict[str, Any]] = {
        "at payout": {"curr": "payout"},
        "at payout, late": {"curr": "payout", "status": late},
        "at another name of payout": {"curr": "a", "headers": override},
        "at the crew": {"curr": "x-checkpoint", "then": ["payout"]},
        "at a pause": {"curr": "approve", "then": ["payout"]},
        "behind the crew": {"curr": "work", "then": ["x-checkpoint", "payout"]},
        "behind a pause": {"curr": "work", "then": ["x-pause", "payout"]},
    }
    for own_id, more in forged.items():
        bank.put(message(own_id, payload={"to": "Eve"}, **more))
    bank.mesh.cloud.run_until_idle()
    for own_id in forged:
        for body in ({}, {"hop": 0}, {"hop": 0, "force": True}, {"force": True}):
            bank.call("POST", f"/api/v1/mesh/{quote(own_id)}/replay", body)
    bank.mesh.cloud.run_until_idle()
    paid = [key for key, body in bank.mesh.objects.items() if b'"paid": {' in body and b"Eve" in body]
    assert paid == []
    status, answer = bank.call("POST", f"/api/v1/mesh/{quote('at payout')}/replay", {})
    assert (status, json.loads(answer)["error"]["code"]) == (403, "forbidden")
    for body, status in (({}, 403), ({"force": True}, 201)):
        assert bank.call("POST", f"/api/v1/mesh/{quote('at payout')}/replay", body, by="AIDATEST")[0] == status
