"""The call of webhooks (`protocol §16.webhooks`): who is let in, what is sent, and what nobody gets to see."""

import base64
import hmac
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.capabilities.triggers.aws.webhook_keys import WebhookKeys
from asya.capabilities.triggers.aws.webhook_queue import KnownWebhook, WebhookBodies, WebhookQueue
from asya.capabilities.triggers.http_calls import TAKE_WEBHOOK
from asya.capabilities.triggers.webhooks import read_keys
from asya.function.aws.telemetry import Telemetry
from asya.gateway.http.router import HttpRoute, answer
from asya.gateway.routes.webhooks import WebhookRoutes
from asya.protocol import ids
from asya.protocol.mesh_table import BODY_LIMIT, MeshTable, Tool
from asya.protocol.triggers import Signature, Trigger, TriggerBatch, Webhook
from asya.tasks.aws.task_store import TaskStoreError
from asya.testing.planned_faults import Death
from asya.testing.services.direct import MemoryS3, MemorySqs
from asya.testing.services.process import ProcessCrashed
from asya.testing.webhooks import kit_secret, signed_headers
from tests.doubles.emf import metric_values, metrics
from tests.doubles.gateway_functions import route_event, signed_by
from tests.doubles.streams import FakeClock
from tests.doubles.tasks import at

SCHEMES: tuple[Signature, ...] = ("github", "stripe", "slack", "standard-webhooks", "hmac-sha256")
BODY = b'{"who": "Zo\xc3\xab", "secret-word": "sesame"}'
ROUTE = "POST /hooks/{name}"
TIMED = ("stripe", "slack", "standard-webhooks")


@dataclass
class Memory:
    """What the tasks table knows.

    Attributes:
        tasks: the ids of tasks that exist.
        decided: the ids of occurrences that a lane has decided about.
        paused: the triggers that are paused.
    """

    tasks: set[str] = field(default_factory=set)
    decided: set[str] = field(default_factory=set)
    paused: set[str] = field(default_factory=set)
    is_down: bool = False

    def read(self, trigger: str, task_id: str, _now: datetime) -> KnownWebhook:
        if self.is_down:
            raise TaskStoreError("down")
        return KnownWebhook(task_id in self.tasks, task_id in self.decided, trigger in self.paused)


class Hooks:
    """The function x-hooks with one webhook of each scheme, which has the name of the scheme."""

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.reads: list[str] = []
        self.clock = FakeClock()
        self.queue, self.memory, self.objects = MemorySqs(), Memory(), MemoryS3()
        self.telemetry = Telemetry("shop", "x-hooks")
        triggers = {name: Trigger(route=("greet",), webhook=Webhook(secret=name, signature=name)) for name in SCHEMES}
        off = Trigger(route=("greet",), enabled=False, webhook=Webhook(secret="off", signature="github"))
        batch = TriggerBatch(size=10, window=60)
        late = Trigger(route=("greet",), batch=batch, webhook=Webhook(secret="late", signature="github"))
        plain = Trigger(route=("greet",))
        skips = Trigger(route=("greet",), overlap="skip", webhook=Webhook(secret="skips", signature="github"))
        pays = Trigger(tool="pay", input="/data", webhook=Webhook(secret="pays", signature="github"))
        own = Webhook(secret="named", signature="github", id="X-GitHub-Delivery")
        named = Trigger(route=("greet",), webhook=own)
        schema: dict[str, object] = {"type": "object", "required": ["amount"]}
        self.mesh = MeshTable(
            namespace="shop",
            actors={},
            tools={"pay": Tool(description="Pays", route=("greet",), input_schema=schema)},
            triggers={
                **triggers,
                "off": off,
                "late": late,
                "plain": plain,
                "skips": skips,
                "pays": pays,
                "named": named,
            },
        )
        webhooks = WebhookRoutes(
            mesh=self.mesh,
            keys=WebhookKeys(self._read, self.clock, self.telemetry.log.warning),
            queue=WebhookQueue(self.queue, "url", self.objects, "bucket"),  # type: ignore[arg-type]
            memory=self.memory,  # type: ignore[arg-type]
            telemetry=self.telemetry,
        )
        self.routes = [HttpRoute(TAKE_WEBHOOK, webhooks.take)]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages on the queue of x-triggers."""
        return [json.loads(sent.body) for sent in self.queue.sent["url"]]

    def headers(self, name: str, body: bytes = BODY, seconds: float = 0.0, key: bytes | None = None) -> dict[str, str]:
        """The headers of a signed webhook."""
        webhook = self.mesh.webhooks[name]
        own = read_keys(kit_secret(webhook.secret), webhook.signature)[0] if key is None else key
        return {**signed_headers(webhook, own, body, at(seconds)), "Content-Type": "application/json"}

    def take(self, name: str, body: bytes = BODY, seconds: float = 0.0, **headers: str) -> tuple[int, Any]:
        """Call a webhook, signed at the start unless headers are given."""
        given = headers or self.headers(name, body)
        event = signed_by(route_event(ROUTE, name=name), None)
        event |= {"headers": given, "body": base64.b64encode(body).decode(), "isBase64Encoded": True}
        now = at(0) + timedelta(seconds=seconds)
        response = answer(event, self.routes, now, self.telemetry.log)
        self.telemetry.flush()
        return response["statusCode"], json.loads(response["body"]) if "body" in response else None

    def task_ids(self) -> list[str]:
        """The ids of the occurrences on the queue."""
        return [ids.occurrence_id(each["trigger"], each["webhook"]["key"]) for each in self.messages]

    def start_all(self) -> None:
        """Let the tasks of all sent webhooks exist, as x-triggers does."""
        self.memory.tasks |= set(self.task_ids())

    def _read(self, reference: str) -> str:
        self.reads.append(reference)
        return self.secrets.get(reference, kit_secret(reference))


@pytest.fixture
def hooks() -> Hooks:
    return Hooks()


@pytest.mark.rule("16.webhooks.signature", "16.webhooks.answer", "16.webhooks.message")
@pytest.mark.parametrize("name", SCHEMES)
def test_16_a_signed_webhook_is_sent_once(hooks: Hooks, name: Signature) -> None:
    status, content = hooks.take(name)
    [message] = hooks.messages
    delivery = message["webhook"]
    assert (message["trigger"], json.loads(delivery["body"])["who"]) == (name, "Zoë")
    task = ids.occurrence_id(name, delivery["key"])
    assert (status, content) == ((200, None) if name == "slack" else (202, {"id": task}))
    hooks.memory.tasks.add(task)
    repeated = hooks.take(name, seconds=60)
    assert repeated == ((200, None) if name == "slack" else (200, {"id": task, "repeated": True}))
    assert len(hooks.messages) == 1


@pytest.mark.rule("13.byte-order-mark")
@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_13_the_mark_of_a_webhook_is_signed_and_no_part_of_its_text(
    hooks: Hooks, name: Signature, encoding: str
) -> None:
    body = BODY.decode().encode(encoding)
    assert hooks.take(name, body)[0] in (200, 202)
    [message] = hooks.messages
    assert message["webhook"]["body"] == BODY.decode()
    assert hooks.take(name, BODY, **hooks.headers(name, body))[0] == 401


@pytest.mark.rule("13.bytes")
@pytest.mark.parametrize("name", SCHEMES)
def test_13_replaced_bytes_of_a_webhook_are_no_wrong_signature(hooks: Hooks, name: Signature) -> None:
    body = BODY.decode().encode("utf-16")
    event = signed_by(route_event(ROUTE, name=name), None)
    headers = {**hooks.headers(name, body), "content-length": str(len(body))}
    event |= {"headers": headers, "body": body.decode("utf-8", "replace")}
    response = answer(event, hooks.routes, at(0), hooks.telemetry.log)
    assert (response["statusCode"], json.loads(response["body"])["error"]["code"]) == (400, "invalid_body")


@pytest.mark.rule("16.webhooks.signature", "15.WebhooksRefused")
@pytest.mark.parametrize("name", SCHEMES)
def test_16_another_signature_is_refused(hooks: Hooks, name: Signature, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer is the same, whatever is wrong."""
    refused = (401, {"error": {"code": "unauthorized", "message": "the signature is missing or wrong"}})
    good = hooks.headers(name)
    assert hooks.take(name, BODY[:-1], **good) == refused
    assert hooks.take(name, b"", **good) == refused
    assert hooks.take(name, **hooks.headers(name, key=b"a-key-of-somebody-else")) == refused
    assert hooks.take(name, **{"Content-Type": "application/json"}) == refused
    other = "stripe" if name != "stripe" else "github"
    assert hooks.take(name, **hooks.headers(other)) == refused
    assert hooks.messages == []
    assert sum(metric_values(metrics(capsys), "WebhooksRefused", actor="x-hooks")) == 5


@pytest.mark.rule("16.webhooks.age")
@pytest.mark.parametrize("name", SCHEMES)
def test_16_an_old_webhook_is_refused_where_its_time_is_signed(hooks: Hooks, name: Signature) -> None:
    for seconds in (301, -301):
        status, content = hooks.take(name, seconds=seconds, **hooks.headers(name))
        if name in TIMED:
            assert (status, content["error"]["code"]) == (401, "unauthorized")
            assert "five minutes" in content["error"]["message"]
        else:
            assert status in (200, 202)
    assert bool(hooks.messages) is (name not in TIMED)


@pytest.mark.rule("16.webhooks.once")
@pytest.mark.parametrize("name", TIMED)
def test_16_a_repetition_that_is_signed_anew_starts_nothing(hooks: Hooks, name: Signature) -> None:
    """Senders sign each attempt with its own time."""
    hooks.take(name)
    hooks.start_all()
    status, _ = hooks.take(name, seconds=3600, **hooks.headers(name, seconds=3600))
    assert status == 200
    assert len(hooks.messages) == 1


TYPES = ("application/json", "text/plain", "application/x-www-form-urlencoded", "application/xml", "a", "x/y+json; z=1")


@pytest.mark.rule("16.webhooks.once", "16.webhooks.id")
@pytest.mark.parametrize("first", TYPES)
@pytest.mark.parametrize("body", [b'{"id": "evt_1"}', b"id=evt_1&other=2", b'payload={"id": "evt_1"}'])
def test_16_a_caught_webhook_starts_nothing_under_another_content_type(hooks: Hooks, first: str, body: bytes) -> None:
    """Nobody signs the content type, and it says how the body is read for the payload."""
    signed = hooks.headers("stripe", body)
    taken = [hooks.take("stripe", body, **{**signed, "Content-Type": each}) for each in (first, *TYPES)]
    keys = {message["webhook"]["key"] for message in hooks.messages}
    assert {status for status, _ in taken} <= {200, 202, 400}
    assert len(keys) == 1


@pytest.mark.rule("16.webhooks.once")
def test_16_a_repetition_before_its_task_exists_is_sent_again_with_its_key(hooks: Hooks) -> None:
    """The process may have died after the send, or x-triggers is late. One key starts one task."""
    hooks.queue.process.faults.plans.append(Death(1, is_after=True).plan)
    with pytest.raises(ProcessCrashed):
        hooks.take("github")
    assert hooks.take("github")[0] == 202
    first, second = (message["webhook"]["key"] for message in hooks.messages)
    assert first == second
    hooks.start_all()
    assert hooks.take("github")[0] == 200


@pytest.mark.rule("16.webhooks.once")
@pytest.mark.parametrize("days", [0, 6, 8, 29, 31, 400])
def test_16_a_webhook_is_known_as_long_as_its_task_is(hooks: Hooks, days: int) -> None:
    """Whatever the time, an answer says what happens: it is repeated, or it starts."""
    status, content = hooks.take("github")
    hooks.start_all()
    assert hooks.take("github", seconds=days * 86400) == (200, {**content, "repeated": True})
    hooks.memory.tasks.clear()
    assert hooks.take("github", seconds=days * 86400) == (status, content)
    assert len(hooks.messages) == 2


@pytest.mark.rule("16.webhooks.once", "16.webhooks.answer")
def test_16_an_outage_of_the_table_loses_nothing(hooks: Hooks) -> None:
    """Nobody knows then whether the trigger is paused, so the answer names no task."""
    hooks.memory.is_down = True
    assert [hooks.take("github") for _ in range(2)] == [(202, {}), (202, {})]
    assert len({message["webhook"]["key"] for message in hooks.messages}) == 1


@pytest.mark.rule("16.webhooks.answer")
def test_16_an_answer_names_a_task_only_if_it_starts(hooks: Hooks) -> None:
    """An operator sees each of the others: as a dead letter, as skipped, or as waiting."""
    hooks.memory.paused.add("stripe")
    assert hooks.take("stripe") == (202, {})
    assert hooks.take("skips") == (202, {})
    for unfit in (b"{}", b'{"data": []}', b'{"data": {"sum": 1}}'):
        assert hooks.take("pays", unfit) == (202, {})
    status, content = hooks.take("pays", b'{"data": {"amount": 1}}')
    assert (status, set(content)) == (202, {"id"})
    assert len(hooks.messages) == 6


@pytest.mark.rule("16.webhooks.answer", "16.webhooks.once")
def test_16_a_repetition_in_a_lane_has_an_id_if_its_task_exists(hooks: Hooks) -> None:
    hooks.take("skips")
    [task] = hooks.task_ids()
    hooks.memory.decided.add(task)
    assert hooks.take("skips") == (200, {"repeated": True})
    hooks.memory.tasks.add(task)
    assert hooks.take("skips") == (200, {"id": task, "repeated": True})
    assert len(hooks.messages) == 1


@pytest.mark.rule("16.webhooks.id")
def test_16_a_named_id_is_what_counts(hooks: Hooks) -> None:
    def take(name: str, body: bytes, delivery: str = "") -> int:
        headers = hooks.headers(name, body) | ({"X-GitHub-Delivery": delivery} if delivery else {})
        status, _ = hooks.take(name, body, **headers)
        hooks.start_all()
        return status

    assert take("named", b"1", "a") == 202
    assert take("named", b"2", "a") == 200
    assert take("named", b"1", "b") == 202
    assert take("named", b"1") == 202
    assert take("stripe", b'{"id": "evt_1", "pending_webhooks": 2}') == 202
    assert take("stripe", b'{"id": "evt_1", "pending_webhooks": 1}') == 200
    assert take("github", b'{"id": "evt_1", "pending_webhooks": 2}') == 202
    assert take("github", b'{"id": "evt_1", "pending_webhooks": 1}') == 202


@pytest.mark.rule("16.webhooks.signature")
@given(data=st.data())
@pytest.mark.slow
def test_16_the_case_of_headers_does_not_matter(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(SCHEMES))
    body = data.draw(st.dictionaries(st.text(), st.integers()).map(lambda value: json.dumps(value).encode()))
    hooks = Hooks()
    given_headers = {
        data.draw(st.sampled_from([key.lower(), key.upper(), key.title(), key])): value
        for key, value in hooks.headers(name, body).items()
    }
    assert hooks.take(name, body, **given_headers)[0] == (200 if name == "slack" else 202)


@pytest.mark.rule("16.webhooks.answer")
def test_16_a_webhook_that_does_not_reach_its_queue_is_not_accepted(hooks: Hooks) -> None:
    hooks.queue.broken.add("SendMessage")
    status, content = hooks.take("github")
    assert (status, content["error"]["code"]) == (503, "unavailable")
    hooks.queue.broken.clear()
    assert hooks.take("github")[0] == 202


@pytest.mark.rule("16.webhooks.unknown")
def test_16_an_unknown_webhook_and_one_that_is_off_get_the_same_answer(hooks: Hooks) -> None:
    signed = hooks.headers("github")
    answers = [hooks.take(name, **signed) for name in ("nobody", "off", "plain", "x" * 2000, "é")]
    assert answers == [answers[0]] * 5
    assert (answers[0][0], answers[0][1]["error"]["code"]) == (404, "not_found")
    assert hooks.reads == []


@pytest.mark.slow
@pytest.mark.rule("16.webhooks.limits", "16.webhooks.large")
@pytest.mark.parametrize(
    ("letter", "kib"), [("x", 256), ("x", 257), ("x", 1007), ("x", 1008), ("x", 2900), ("é", 512), ("\x01", 256)]
)
def test_16_a_body_has_2900_kib_at_most(hooks: Hooks, letter: str, kib: int) -> None:
    """A body that no message takes travels through S3, and x-triggers reads it back."""
    count = kib * 1024 // len(letter.encode())
    body = (letter * count).encode()
    signed = hooks.headers("github", body) | {"Content-Type": "text/plain"}
    assert hooks.take("github", body, **signed)[0] == 202
    [message] = hooks.messages
    restored = WebhookBodies(hooks.objects, "bucket").restored(json.dumps(message).encode())  # type: ignore[arg-type]
    assert json.loads(restored)["webhook"]["body"] == body.decode()
    assert json.loads(restored)["webhook"]["key"] == message["webhook"]["key"]


@pytest.mark.rule("16.webhooks.limits")
def test_16_a_larger_body_is_refused_in_words(hooks: Hooks) -> None:
    body = b" " * (BODY_LIMIT + 1)
    assert hooks.take("github", body) == (
        413,
        {"error": {"code": "too_large", "message": "the body has 2969601 bytes; the limit is 2969600"}},
    )
    in_lane = b'"' + b"x" * 1024 * 1024 + b'"'
    status, content = hooks.take("skips", in_lane)
    assert (status, content["error"]["code"]) == (413, "too_large")
    assert "overlap, debounce or batch" in content["error"]["message"]
    assert hooks.messages == []


@pytest.mark.rule("16.webhooks.payload")
@pytest.mark.parametrize("body", [b"{", b"", b"\xff\xfe", b'{"a": "\xc3"}'])
def test_16_a_signed_body_of_another_form_is_refused(hooks: Hooks, body: bytes) -> None:
    status, content = hooks.take("github", body)
    assert (status, content["error"]["code"]) == (400, "invalid_body")
    assert hooks.messages == []


@pytest.mark.rule("16.webhooks.private")
def test_16_who_signs_nothing_learns_nothing_of_the_body(hooks: Hooks) -> None:
    """A body of another form is refused for its signature first, and a large one for its size before."""
    assert hooks.take("github", b"{", **hooks.headers("github"))[0] == 401
    assert hooks.take("github", b"x" * (BODY_LIMIT + 1), **hooks.headers("github"))[0] == 413
    assert hooks.take("nobody", b"x" * (BODY_LIMIT + 1), **hooks.headers("github"))[0] == 404


@pytest.mark.rule("16.webhooks.private")
@pytest.mark.parametrize("name", SCHEMES)
def test_16_logs_and_answers_have_no_part_of_a_request(
    hooks: Hooks, name: Signature, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    answers = [hooks.take(name)]
    signed = hooks.headers(name)
    answers += [hooks.take(name, BODY + b" ", **signed), hooks.take(name, seconds=900, **signed)]
    answers += [hooks.take("sesame", **signed), hooks.take(name, b"sesame")]
    hooks.queue.broken.add("SendMessage")
    answers.append(hooks.take(name, b'{"a": "sesame"}'))
    logged = str([vars(record) for record in caplog.records])
    assert "webhook refused" in logged
    for text in (str(answers), logged):
        assert "sesame" not in text
        assert kit_secret(name) not in text
        assert not any(value in text for key, value in signed.items() if "signature" in key.lower())


@pytest.mark.rule("16.webhooks.keys")
def test_16_a_rotated_key_counts_at_once(hooks: Hooks) -> None:
    hooks.take("github")
    new = "a-new-key-12345678"
    hooks.secrets["github"] = f"{new}\n{kit_secret('github')}"
    hooks.clock.seconds += 10
    assert hooks.take("github", b"{}", **hooks.headers("github", b"{}", key=new.encode()))[0] == 202
    assert hooks.take("github", b"[]")[0] == 202
    hooks.secrets["github"] = new
    hooks.clock.seconds += 60
    assert hooks.take("github", b"1")[0] == 401


@pytest.mark.rule("16.webhooks.keys")
def test_16_without_keys_nobody_is_let_in(hooks: Hooks, caplog: pytest.LogCaptureFixture) -> None:
    hooks.secrets["github"] = ""
    status, content = hooks.take("github", **hooks.headers("github", key=b""))
    assert (status, content["error"]["code"]) == (503, "unavailable")
    assert "hooks" not in content["error"]["message"]
    assert "0 lines" in caplog.text


SIGNS_A_CHOSEN_BODY = {
    "github": BODY,
    "hmac-sha256": BODY,
    "stripe": f"{int(at(0).timestamp())}.".encode() + BODY,
    "slack": f"v0:{int(at(0).timestamp())}:".encode() + BODY,
    "standard-webhooks": f"msg_1.{int(at(0).timestamp())}.".encode() + BODY,
}
"""The body of `github` whose signature is one of the scheme."""


def caught(name: Signature, digest: bytes) -> dict[str, str]:
    """The headers of a scheme with the digest of a call that somebody has caught."""
    time = str(int(at(0).timestamp()))
    return {
        "github": {"X-Hub-Signature-256": f"sha256={digest.hex()}"},
        "hmac-sha256": {"X-Signature-256": digest.hex()},
        "stripe": {"Stripe-Signature": f"t={time},v1={digest.hex()}"},
        "slack": {"X-Slack-Request-Timestamp": time, "X-Slack-Signature": f"v0={digest.hex()}"},
        "standard-webhooks": {
            "webhook-id": "msg_1",
            "webhook-timestamp": time,
            "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
        },
    }[name]


@pytest.mark.rule("16.webhooks.own-keys")
@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("rotates", [False, True])
def test_16_a_caught_webhook_starts_no_other_trigger(hooks: Hooks, name: Signature, rotates: bool) -> None:
    """What `named` has signed fits each scheme, if its sender lets somebody choose the body. No scheme signs the trigger."""
    key = f"whsec_{base64.b64encode(b'a-key-of-both-sides').decode()}"
    raw = read_keys(key, name)[0]
    older = f"{kit_secret('older')}\n" if rotates else ""
    hooks.secrets[name] = older + key
    hooks.secrets["named"] = raw.decode()
    digest = hmac.digest(raw, SIGNS_A_CHOSEN_BODY[name], "sha256")
    status, content = hooks.take(name, BODY, **caught(name, digest), **{"Content-Type": "application/json"})
    assert (status, content["error"]["code"]) == (503, "unavailable")
    assert hooks.messages == []


@pytest.mark.rule("16.webhooks.own-keys")
def test_16_a_shared_key_stops_both_and_the_log_names_them(hooks: Hooks, caplog: pytest.LogCaptureFixture) -> None:
    """The key and the other webhook are nothing for the sender."""
    hooks.secrets["named"] = kit_secret("github")
    answers = [hooks.take("github"), hooks.take("named", **hooks.headers("github"))]
    assert [status for status, _ in answers] == [503, 503]
    assert "the webhooks 'github' and 'named' have one key" in caplog.text
    assert "named" not in str(answers)
    assert kit_secret("github") not in caplog.text
    hooks.secrets["named"] = kit_secret("another")
    hooks.clock.seconds += 60
    assert hooks.take("github")[0] == 202


@pytest.mark.rule("16.webhooks.own-keys")
@pytest.mark.parametrize("padding", [b"\0", b"\0\0\0"])
def test_16_keys_that_sign_alike_are_one_key(hooks: Hooks, padding: bytes) -> None:
    """HMAC fills a short key with zeros, so other bytes may be the same key."""
    raw = b"a-key-of-sixteen-bytes"
    hooks.secrets["standard-webhooks"] = base64.b64encode(raw + padding).decode()
    hooks.secrets["github"] = raw.decode()
    assert hooks.take("github", **hooks.headers("github", key=raw))[0] == 503


@pytest.mark.rule("16.webhooks.own-keys")
def test_16_a_broken_secret_of_another_webhook_stops_none(hooks: Hooks) -> None:
    """Nor does one that is off: it takes no call. A stranger's call reads no other secret."""
    hooks.secrets["named"] = ""
    hooks.secrets["off"] = kit_secret("github")
    assert hooks.take("github", **hooks.headers("github", key=b"a-key-of-somebody-else"))[0] == 401
    assert set(hooks.reads) == {"github"}
    assert hooks.take("github")[0] == 202


@pytest.mark.rule("16.webhooks.questions")
def test_16_questions_of_the_sender_start_nothing(hooks: Hooks) -> None:
    challenge = {
        "type": "url_verification",
        "token": "t",
        "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P",
    }
    asked = json.dumps(challenge).encode()
    assert hooks.take("slack", asked) == (200, {"challenge": challenge["challenge"]})
    assert hooks.take("slack", asked, **hooks.headers("slack"))[0] == 401
    assert hooks.take("github", **hooks.headers("github"), **{"X-GitHub-Event": "ping"}) == (200, {})
    assert hooks.take("github", b"1", **hooks.headers("github"), **{"X-GitHub-Event": "ping"})[0] == 401
    assert hooks.messages == []
    # Others may have events of these names.
    assert hooks.take("stripe", asked)[0] == 202


@pytest.mark.rule("16.webhooks.payload")
def test_16_the_event_of_github_is_told(hooks: Hooks) -> None:
    hooks.take("github", **hooks.headers("github"), **{"X-GitHub-Event": "push"})
    assert hooks.messages[0]["webhook"]["event"] == "push"


@pytest.mark.rule("16.webhooks.answer")
def test_16_a_webhook_that_shares_its_task_has_no_id(hooks: Hooks) -> None:
    assert hooks.take("late") == (202, {})
    hooks.memory.decided |= set(hooks.task_ids())
    assert hooks.take("late") == (200, {"repeated": True})


@pytest.mark.rule("15.WebhooksTaken")
def test_15_new_webhooks_are_counted(hooks: Hooks, capsys: pytest.CaptureFixture[str]) -> None:
    for body in (b"1", b"2", b"2"):
        hooks.take("github", body)
        hooks.start_all()
    assert sum(metric_values(metrics(capsys), "WebhooksTaken", actor="x-hooks")) == 2
