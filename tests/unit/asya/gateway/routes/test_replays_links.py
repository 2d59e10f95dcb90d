"""Replays start once: links, keys, two calls at once, and deaths between the writes (`protocol §12.link`)."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from asya.function.aws import clients
from asya.function.aws.submission_sender import MaybeSentError, NotSentError, SubmissionSender
from asya.protocol.task import TaskRecord
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.task_store import StoredRecord
from asya.tasks.view import TaskView
from tests.doubles.api_function import ALICE, NOW, RESULTS, emulated_shop
from tests.doubles.envelopes import message, status
from tests.doubles.tasks import event
from tests.unit.asya.gateway.routes.test_replays import OPERATOR, Gateway
from tests.unit.memory_tables import memory_tables

FAILED = status(phase="failed", reason="RuntimeError", deadline_at="2026-11-20T12:04:00Z")
LATER = NOW + timedelta(seconds=40)
"""After the lease of a call."""


class Died(BaseException):
    """The process dies."""


@dataclass
class Shop(Gateway):
    """The gateway, with a failed task `env-1` of Alice."""

    def replay(self, body: object = None, *, key: str = "", at: datetime = NOW, iam: Any = ALICE) -> tuple[int, Any]:
        """Replay `env-1`."""
        self.now = at
        more = {"headers": {"idempotency-key": key}} if key else {}
        path = "/api/v1/mesh/env-1/replay"
        return self.post_to(path, {"id": "env-1"}, json.dumps(body or {}), iam, more)

    def view(self, task_id: str = "env-1", at: datetime = LATER) -> TaskView:
        """The task as it is shown."""
        task = self.tasks.read(task_id, at)
        assert task is not None
        return task

    def end(self, task_id: str, how: Any, seconds: float = 50) -> None:
        """End a task."""
        self.report(event(task_id, "received", 1, seconds), event(task_id, how, 1, seconds + 1, reason="RuntimeError"))

    def sent(self) -> list[str]:
        """The ids of the envelopes that were sent since the last look."""
        return [each["id"] for each in self.messages("infer")]

    def open_failures(self, iam: Any = OPERATOR, **query: str) -> tuple[set[str], int]:
        """The listed failures, and how many are left out."""
        path = "/api/v1/mesh"
        more = {"queryStringParameters": {"status": "failed"} | query}
        code, page = self.request("GET", path, {}, "", iam, more)
        assert code == 200, page
        return {each["id"] for each in page["items"]}, page.get("resolved", 0)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with memory_tables(), emulated_shop(monkeypatch, "infer", "post"):
        gateway = Shop()
        gateway.failed("RuntimeError")
        gateway.put(f"{RESULTS}failed/env-1.json", message(status=FAILED))
        gateway.put("hops/env-1/0/1.infer.json", message())
        yield gateway


@pytest.mark.rule("12.link")
def test_the_old_task_names_its_replay_and_the_replay_names_it(shop: Shop) -> None:
    _, body = shop.replay()
    old, new = shop.view(), shop.view(body["id"])
    assert old.resolution is not None
    assert (old.status, old.resolution.how, old.resolution.task) == ("failed", "replayed", new.id)
    assert (old.resolution.status, old.resolution.by, old.resolution.is_open) == ("pending", "AIDAALICE", False)
    assert new.started_by is not None
    assert (new.started_by.kind, new.started_by.name) == ("replay", "env-1")


@pytest.mark.rule("12.replay.again")
@pytest.mark.parametrize("state", ["pending", "running", "succeeded"])
def test_a_second_replay_is_refused_while_the_first_one_is_good(shop: Shop, state: str) -> None:
    new_id = shop.replay()[1]["id"]
    if state == "running":
        shop.report(event(new_id, "received", 1, 20))
    if state == "succeeded":
        shop.end(new_id, "succeeded")
    code, body = shop.replay({"hop": 1}, iam=OPERATOR, at=LATER)
    assert (code, body["error"]["code"]) == (409, "replayed")
    assert new_id in body["error"]["message"]
    assert "`--force` runs 'env-1' once more" in body["error"]["message"]
    assert shop.sent() == [new_id]
    code, body = shop.replay({"force": True}, at=LATER)
    assert (code, shop.sent()) == (201, [body["id"]])
    assert shop.view().resolution is not None
    assert shop.view().resolution.task == body["id"]  # type: ignore[union-attr]


@pytest.mark.rule("12.replay.again", "13.resolution.again")
@pytest.mark.parametrize("end", ["failed", "canceled"])
def test_a_failure_whose_replay_failed_is_open_again(shop: Shop, end: str) -> None:
    first = shop.replay()[1]["id"]
    shop.end(first, end)
    resolution = shop.view().resolution
    assert resolution is not None
    assert (resolution.task, resolution.status, resolution.is_open) == (first, end, True)
    code, body = shop.replay(at=LATER)
    assert (code, body["id"] != first) == (201, True)
    shop.end(body["id"], "succeeded", 90)
    assert shop.open_failures()[0] == set()


@pytest.mark.rule("12.replay.key")
@pytest.mark.parametrize("force", [False, True])
def test_a_repeated_key_starts_one_replay(shop: Shop, force: bool) -> None:
    wish = {"force": True} if force else {}
    new_id = shop.replay(wish, key="k-1")[1]["id"]
    assert shop.replay(wish, key="k-1")[1]["id"] == new_id
    assert shop.sent() == [new_id]
    shop.end(new_id, "failed")
    assert shop.replay(wish, key="k-1", at=LATER)[1]["id"] == new_id
    assert shop.sent() == []
    code, body = shop.replay({"hop": 1}, key="k-1", at=LATER)
    assert (code, body["error"]["code"]) == (409, "idempotency_mismatch")
    code, body = shop.replay(wish, key="k-2", at=LATER)
    assert (code, body["id"] == new_id) == (201, False)


@pytest.mark.rule("12.link")
@pytest.mark.parametrize("keys", [("", ""), ("k-1", "k-2"), ("", "k-2")])
def test_of_two_calls_at_once_one_starts_a_replay(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, str]
) -> None:
    """The second call runs between the reads of the first one and its link."""
    answers: list[tuple[int, Any]] = []
    put = DynamoTaskStore.put_record

    def put_after_another_call(
        self: DynamoTaskStore, record: TaskRecord, replaces: StoredRecord | None, now: datetime
    ) -> Any:
        if record.id == "env-1" and not answers:
            answers.append((0, None))
            answers[0] = shop.replay(key=keys[1], iam=OPERATOR)
        return put(self, record, replaces, now)

    monkeypatch.setattr(DynamoTaskStore, "put_record", put_after_another_call)
    answers.append(shop.replay(key=keys[0]))
    assert sorted(code for code, _ in answers) == [201, 409]
    [refused] = [body for code, body in answers if code == 409]
    [started] = [body["id"] for code, body in answers if code == 201]
    assert refused["error"]["code"] in ("replayed", "idempotency_in_progress")
    assert shop.sent() == [started]


def death_at(monkeypatch: pytest.MonkeyPatch, step: int) -> Callable[[], bool]:
    """Let the process die before its write number `step`, or before it sends; return whether it has."""
    count = -1
    died = False

    def dying(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal count, died
            count += 1
            if count == step:
                died = True
                raise Died
            return original(*args, **options)

        return call

    table = type(clients.dynamodb())
    for name in ("put_item", "update_item", "delete_item"):
        monkeypatch.setattr(table, name, dying(getattr(table, name)))
    monkeypatch.setattr(SubmissionSender, "send", dying(SubmissionSender.send))
    return lambda: died


@pytest.mark.rule("12.link.died", "13.resolution.read")
@pytest.mark.slow
@pytest.mark.parametrize("key", ["", "k-1"])
@pytest.mark.parametrize("next_key", ["", "same", "k-2"])
def test_a_death_at_any_write_loses_no_replay_and_starts_none_twice(
    monkeypatch: pytest.MonkeyPatch, key: str, next_key: str
) -> None:
    """Each message has the id of one task, which the old record names."""
    for step in range(12):
        with memory_tables(), pytest.MonkeyPatch.context() as account, emulated_shop(account, "infer", "post"):
            shop = Shop()
            shop.failed("RuntimeError")
            shop.put(f"{RESULTS}failed/env-1.json", message(status=FAILED))
            with pytest.MonkeyPatch.context() as patch:
                has_died = death_at(patch, step)
                with suppress(Died):
                    shop.replay(key=key)
            is_settled = shop.open_failures()[0] == set()
            sent = shop.sent()
            assert not is_settled or sent, f"step {step}: a failure is hidden, and nothing runs"
            following = key if next_key == "same" else next_key
            code, body = shop.replay(key=following, at=LATER)
            assert code == 201 or body["error"]["code"] == "replayed", (step, body)
            sent += shop.sent()
            assert len(set(sent)) == 1, f"step {step}: {sent}"
            resolution = shop.view().resolution
            assert resolution is not None
            assert (resolution.task, resolution.is_open) == (sent[0], False)
            shop.end(sent[0], "succeeded", 100)
            assert shop.open_failures() == (set(), 1)
            if not has_died():
                return
    raise AssertionError("the call has more writes than expected")


@pytest.mark.rule("12.link.died")
def test_within_the_lease_another_call_waits(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SubmissionSender, "send", lambda *_: (_ for _ in ()).throw(Died))
        with pytest.raises(Died):
            shop.replay()
    code, body = shop.replay(at=NOW + timedelta(seconds=30))
    assert (code, body["error"]["code"]) == (409, "idempotency_in_progress")
    code, body = shop.replay({"hop": 1}, at=LATER)
    assert (code, body["error"]["code"]) == (409, "replayed")
    assert shop.open_failures()[0] == {"env-1"}
    code, body = shop.replay(at=LATER)
    assert (code, shop.sent()) == (201, [body["id"]])


@pytest.mark.rule("12.link")
@pytest.mark.parametrize(("error", "is_linked"), [(NotSentError("no"), False), (MaybeSentError("?"), True)])
def test_a_queue_that_rejects_the_message_takes_the_link_away(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, error: Exception, is_linked: bool
) -> None:
    def refuse(*_: object) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SubmissionSender, "send", refuse)
        assert shop.replay()[0] == 503
    assert (shop.view().resolution is not None) is is_linked
    assert shop.open_failures()[0] == {"env-1"}
    code, body = shop.replay(at=LATER)
    assert (code, shop.sent()) == (201, [body["id"]])
    assert shop.open_failures() == (set(), 1)


@pytest.mark.rule("12.link")
def test_a_call_that_is_refused_late_leaves_the_link_of_another_one(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While SQS thinks about the message of the first call, a second one with its key takes the replay over and sends it."""
    send = SubmissionSender.send
    answers: list[tuple[int, Any]] = []

    def refuse_late(self: SubmissionSender, *args: Any, **options: Any) -> Any:
        if answers:
            return send(self, *args, **options)
        answers.append((0, None))
        answers[0] = shop.replay(key="k-1", at=LATER)
        raise NotSentError("no")

    monkeypatch.setattr(SubmissionSender, "send", refuse_late)
    assert shop.replay(key="k-1")[0] == 503
    code, body = answers[0]
    assert (code, shop.sent()) == (201, [body["id"]])
    resolution = shop.view().resolution
    assert resolution is not None
    assert (resolution.task, resolution.is_open) == (body["id"], False)
    assert shop.replay(at=LATER)[0] == 409


@pytest.mark.rule("12.link.died")
def test_a_slow_call_completes_no_link_of_another_one(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call is forced, and dies before it sends: nobody may take its replay for one at work."""
    send = SubmissionSender.send
    calls = 0

    def send_beside_another_call(self: SubmissionSender, *args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Died
        answer = send(self, *args, **options)
        with suppress(Died):
            shop.replay({"force": True})
        return answer

    monkeypatch.setattr(SubmissionSender, "send", send_beside_another_call)
    first = shop.replay()[1]["id"]
    assert (shop.sent(), calls) == ([first], 2)
    resolution = shop.view().resolution
    assert resolution is not None
    assert (resolution.task != first, resolution.is_open) == (True, True)
    assert shop.open_failures()[0] == {"env-1"}


@pytest.mark.rule("12.replay.no-record")
def test_without_a_record_a_repeated_call_finds_the_replay(shop: Shop) -> None:
    shop.put(f"{RESULTS}failed/env-9.json", message(status=FAILED, id="env-9"))

    def replay(at: datetime = NOW) -> str:
        shop.now = at
        code, body = shop.post("env-9", "replay")
        assert code == 201, body
        return str(body["id"])

    new_id = replay()
    assert (replay(), replay(LATER), shop.sent()) == (new_id, new_id, [new_id])
    shop.end(new_id, "failed")
    assert replay(LATER) != new_id
    assert shop.post("env-9", "replay", {"force": True})[1]["id"] != new_id


@pytest.mark.rule("13.resolution.once", "13.list.open")
def test_an_open_failure_counts_once(shop: Shop) -> None:
    """Alice cannot see the replay of the operator, so she sees her own task."""
    first = shop.replay(iam=OPERATOR)[1]["id"]
    assert (shop.open_failures(), shop.open_failures(ALICE)) == ((set(), 1), (set(), 1))
    shop.end(first, "failed")
    assert (shop.open_failures(), shop.open_failures(ALICE)) == (({first}, 1), ({"env-1"}, 0))
    assert shop.open_failures(resolved="true")[0] == {"env-1", first}
    # The first task is replayed once more: its failed replay is settled with it.
    second = shop.replay(iam=ALICE, at=LATER)[1]["id"]
    assert (shop.open_failures(), shop.open_failures(ALICE)) == ((set(), 2), (set(), 1))
    code, body = shop.post(first, "dismiss", {"reason": "test"})
    assert (code, body["error"]["code"]) == (409, "overtaken")
    shop.end(second, "failed", 80)
    assert (shop.open_failures(), shop.open_failures(ALICE)) == (({second}, 2), ({second}, 1))
