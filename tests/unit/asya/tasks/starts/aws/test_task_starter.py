"""protocol §13, POST and `Idempotency-Key`: the start of a task with a crash or an AWS failure at any step."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

import boto3
import pytest
from moto import mock_aws

from asya.function.aws.submission_sender import MaybeSentError, NotSentError, TooLargeError
from asya.function.hop import Delivery
from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.protocol.codec import decode, encode
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor, MeshTable
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts.aws.idempotency_keys import IdempotencyKeys
from asya.tasks.starts.aws.task_starter import TaskStarter
from asya.tasks.starts.idempotency import STARTERS, IdempotencyKey, KeyClaim, lease_of
from asya.tasks.starts.submission import FirstMessage, Origin, first_envelope, read_submission
from tests.doubles.dynamo import create_tasks_table
from tests.doubles.tasks import at

MESH = MeshTable(namespace="flights", actors={"inspect": Actor(kind="handler")})
LEASE = lease_of(names.GATEWAY_API)
KEY = IdempotencyKey("AIDA", "nightly", "digest")


class Died(BaseException):
    """The process crashes; no cleanup runs."""


@dataclass
class Queue:
    """Accepts messages, or raises before or after accepting one.

    Attributes:
        meanwhile: what other processes do before the queue answers; it happens once.
    """

    sent: list[Envelope] = field(default_factory=list)
    before: BaseException | None = None
    after: BaseException | None = None
    meanwhile: Callable[[], None] | None = None

    def send(self, delivery: Delivery) -> None:
        if self.meanwhile:
            do, self.meanwhile = self.meanwhile, None
            do()
        if self.before:
            raise self.before
        self.sent.append(decode(delivery.body))
        if self.after:
            raise self.after

    @property
    def ids(self) -> list[str]:
        return [envelope.id for envelope in self.sent]


@dataclass
class Gateway:
    """A starter whose store, keys and sender can fail."""

    starter: TaskStarter
    store: DynamoTaskStore
    queue: Queue
    warnings: list[str]
    body: bytes = b'{"timeout": 60}'

    def compose(self, task_id: str, created_at: datetime) -> FirstMessage:
        submission = read_submission(self.body, "inspect", MESH)
        envelope = first_envelope(submission, task_id, created_at, Origin("https://api", "00f067aa0ba902b7"))
        return FirstMessage(envelope, Delivery("inspect", encode(envelope), "next"))

    def start(self, task_id: str) -> str:
        return self.starter.start(self.compose, "AIDA", task_id, at(0))

    def start_once(self, task_id: str, seconds: float = 0, key: IdempotencyKey = KEY) -> str:
        return self.starter.start_once(self.compose, key, task_id, at(seconds))

    def status(self, task_id: str) -> str | None:
        found = self.store.records([task_id], at(30)).get(task_id)
        return found.record.status if found else None


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1")
        create_tasks_table(client, "tasks")
        store, queue, warnings = DynamoTaskStore(client, "tasks", 1e6), Queue(), list[str]()
        starter = TaskStarter(
            tasks=Tasks(store, warnings.append),
            keys=IdempotencyKeys(client, "tasks", 3600.0, names.GATEWAY_API),
            sender=queue,  # type: ignore[arg-type]
            warn=warnings.append,
        )
        yield Gateway(starter, store, queue, warnings)


def refused(caught: pytest.ExceptionInfo[ApiError]) -> tuple[int, str]:
    return caught.value.status, caught.value.code


def test_the_record_is_there_before_the_message(gateway: Gateway) -> None:
    gateway.queue.before = Died()
    with pytest.raises(Died):
        gateway.start("t1")
    assert (gateway.status("t1"), gateway.queue.ids) == ("pending", [])


def broken(*_: object) -> None:
    raise TaskStoreError("the table is down")


def test_nothing_is_sent_without_a_record(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway.store, "put_record", broken)
    with pytest.raises(TaskStoreError):
        gateway.start("t1")
    assert gateway.queue.ids == []


def test_stealth_leaves_no_record(gateway: Gateway) -> None:
    gateway.body = b'{"headers": {"x-asya-mesh-status": "off"}}'
    assert gateway.start("t1") == "t1"
    assert (gateway.status("t1"), gateway.queue.ids) == (None, ["t1"])


def test_a_refused_message_leaves_no_record(gateway: Gateway) -> None:
    gateway.queue.before = NotSentError("access denied")
    with pytest.raises(ApiError) as caught:
        gateway.start("t1")
    assert refused(caught) == (503, "not_sent")
    assert gateway.status("t1") is None


def test_a_message_that_is_too_large_is_an_error_of_the_caller(gateway: Gateway) -> None:
    gateway.queue.before = TooLargeError("the envelope has 2000000 bytes")
    with pytest.raises(ApiError) as caught:
        gateway.start("t1")
    assert refused(caught) == (413, "too_large")


def test_without_an_answer_of_sqs_the_record_stays_and_the_error_names_the_id(gateway: Gateway) -> None:
    gateway.queue.after = MaybeSentError("timed out")
    with pytest.raises(ApiError, match="task t1 may or may not") as caught:
        gateway.start("t1")
    assert refused(caught) == (503, "maybe_sent")
    assert gateway.status("t1") == "pending"


def test_a_repetition_gets_the_same_id_and_sends_nothing(gateway: Gateway) -> None:
    assert [gateway.start_once(task_id, second) for second, task_id in enumerate(("t1", "t2", "t3"))] == ["t1"] * 3
    assert gateway.queue.ids == ["t1"]
    assert (gateway.status("t1"), gateway.status("t2")) == ("pending", None)


@pytest.mark.parametrize("digest", ["digest", "other digest"])
def test_keys_belong_to_their_callers(gateway: Gateway, digest: str) -> None:
    assert gateway.start_once("t1") == "t1"
    assert gateway.start_once("t2", key=IdempotencyKey("AIDBOB", "nightly", digest)) == "t2"


def test_another_request_under_the_same_key_is_a_conflict(gateway: Gateway) -> None:
    gateway.start_once("t1")
    with pytest.raises(ApiError) as caught:
        gateway.start_once("t2", key=IdempotencyKey("AIDA", "nightly", "other digest"))
    assert refused(caught) == (409, "idempotency_mismatch")


@pytest.mark.rule("13.start.idempotent")
@pytest.mark.parametrize("sent", [False, True])
def test_a_repetition_finishes_after_a_crash_before_or_after_the_message(gateway: Gateway, sent: bool) -> None:
    gateway.queue.before, gateway.queue.after = (None, Died()) if sent else (Died(), None)
    with pytest.raises(Died):
        gateway.start_once("t1")
    gateway.queue.before = gateway.queue.after = None
    with pytest.raises(ApiError) as caught:
        gateway.start_once("t2", LEASE - 1)
    assert refused(caught) == (409, "idempotency_in_progress")
    assert caught.value.retry_after
    assert gateway.start_once("t3", LEASE + 1) == "t1"
    assert gateway.start_once("t4", LEASE + 2) == "t1"
    # Died after sending: nobody could know, and the second message is what SQS itself may do with any.
    assert gateway.queue.ids == (["t1", "t1"] if sent else ["t1"])
    first, last = gateway.queue.sent[0], gateway.queue.sent[-1]
    assert first.status == last.status
    assert first.status is not None
    assert first.status.deadline_at == "2026-11-20T09:01:00.000000Z"


def test_a_rejected_message_releases_the_key_at_once(gateway: Gateway) -> None:
    gateway.queue.before = NotSentError("access denied")
    with pytest.raises(ApiError):
        gateway.start_once("t1")
    assert gateway.status("t1") is None
    gateway.queue.before = None
    assert gateway.start_once("t2", 1) == "t1"
    assert (gateway.queue.ids, gateway.status("t1")) == (["t1"], "pending")


@pytest.mark.rule("13.start.idempotent")
def test_a_task_whose_message_was_rejected_begins_with_the_repetition(gateway: Gateway) -> None:
    """A trigger repeats a start for twenty minutes, and a redrive may come days later: the deadline has not passed then."""
    for second in (0, 1200):
        gateway.queue.before = NotSentError("throttled")
        with pytest.raises(ApiError):
            gateway.start_once("t1", second)
    gateway.queue.before = Died()
    with pytest.raises(Died):
        gateway.start_once("t1", 1800)
    gateway.queue.before = None
    gateway.start_once("t1", 1900)
    (sent,) = gateway.queue.sent
    assert sent.status is not None
    assert (sent.status.created_at, sent.status.deadline_at) == (
        "2026-11-20T09:30:00.000000Z",
        "2026-11-20T09:31:00.000000Z",
    )


@pytest.mark.rule("16.start.kept")
def test_16_an_expired_key_starts_nothing_while_its_task_is_kept(gateway: Gateway) -> None:
    """The key expires an hour after the start here, the record much later. A trigger gives the same id again."""
    assert [gateway.start_once("t1", second) for second in (0, 3601, 7300)] == ["t1"] * 3
    assert gateway.queue.ids == ["t1"]
    assert gateway.start_once("t2", 11000) == "t2"  # of a caller, whose ids are new ones
    assert gateway.queue.ids == ["t1", "t2"]


def test_a_failed_write_of_the_record_releases_the_key(gateway: Gateway) -> None:
    with pytest.MonkeyPatch.context() as outage:
        outage.setattr(gateway.store, "put_record", broken)
        with pytest.raises(TaskStoreError):
            gateway.start_once("t1")
    assert gateway.start_once("t2", 1) == "t1"


def test_a_message_that_may_be_sent_keeps_the_key_for_a_while(gateway: Gateway) -> None:
    gateway.queue.after = MaybeSentError("timed out")
    with pytest.raises(ApiError):
        gateway.start_once("t1")
    gateway.queue.after = None
    with pytest.raises(ApiError) as caught:
        gateway.start_once("t2", 1)
    assert refused(caught) == (409, "idempotency_in_progress")
    assert gateway.start_once("t2", LEASE + 1) == "t1"


def test_keys_expire_with_their_tasks(gateway: Gateway) -> None:
    gateway.start_once("t1")
    assert gateway.start_once("t2", 3599) == "t1"
    assert gateway.start_once("t3", 3601) == "t3"


@pytest.mark.rule("13.start.lease")
def test_a_claim_outlives_each_function_that_starts_tasks() -> None:
    assert STARTERS.keys() == {names.GATEWAY_API, names.TRIGGERS}
    assert all(lease_of(function) > timeout for function, timeout in STARTERS.items())


@pytest.mark.rule("13.start.fence")
@pytest.mark.parametrize("is_marked", [True, False])
def test_a_slow_process_withdraws_nothing_from_the_one_that_took_over(gateway: Gateway, is_marked: bool) -> None:
    """Its send is refused after the other process has sent the message, and perhaps before that has marked it."""

    def take_over() -> None:
        gateway.queue.before = None
        if not is_marked:
            gateway.queue.after = Died()
        with suppress(Died):
            gateway.start_once("t2", LEASE + 1)
        gateway.queue.before, gateway.queue.after = NotSentError("throttled"), None

    gateway.queue.meanwhile = take_over
    gateway.queue.before = NotSentError("throttled")
    with pytest.raises(ApiError):
        gateway.start_once("t1")
    assert (gateway.status("t1"), gateway.queue.ids) == ("pending", ["t1"])
    with pytest.raises(ApiError) if not is_marked else nullcontext():
        gateway.start_once("t3", LEASE + 2)
    assert gateway.queue.ids == ["t1"]


@pytest.mark.rule("13.start.fence")
def test_a_message_that_may_be_under_way_keeps_its_record(gateway: Gateway) -> None:
    """The first process died after its send; the send of the second is refused."""
    gateway.queue.after = Died()
    with pytest.raises(Died):
        gateway.start_once("t1")
    gateway.queue.after, gateway.queue.before = None, NotSentError("throttled")
    for second in (LEASE + 1, LEASE + 2):
        with pytest.raises(ApiError) as caught:
            gateway.start_once("t1", second)
        assert refused(caught) == (503, "not_sent")
        assert gateway.status("t1") == "pending"
    gateway.queue.before = None
    gateway.start_once("t1", LEASE + 3)
    first, last = gateway.queue.sent
    assert first.status == last.status


@pytest.mark.rule("13.start.fence")
def test_a_refused_send_after_another_one_was_accepted_undoes_nothing(gateway: Gateway) -> None:
    """The slow process has sent the message after all, while the one that took over was waiting for its queue."""

    def slow_one_goes_on() -> None:
        claim = KeyClaim("t1", at(0))
        gateway.starter.keys.mark_sent(KEY, claim)

    gateway.queue.after = Died()
    with pytest.raises(Died):
        gateway.start_once("t1")
    gateway.queue.after, gateway.queue.before = None, NotSentError("throttled")
    gateway.queue.meanwhile = slow_one_goes_on
    with pytest.raises(ApiError):
        gateway.start_once("t1", LEASE + 1)
    assert gateway.status("t1") == "pending"
    assert gateway.start_once("t2", LEASE + 2) == "t1"
    assert gateway.queue.ids == ["t1"]


@pytest.mark.rule("13.start.fence")
def test_a_record_that_was_there_before_stays(gateway: Gateway) -> None:
    """Another sender has used the id, so the record is not that of the refused start."""
    gateway.start("t1")
    gateway.queue.before = NotSentError("throttled")
    with pytest.raises(ApiError):
        gateway.starter.start_once(gateway.compose, IdempotencyKey("AIDBOB", "other", "digest"), "t1", at(1))
    assert gateway.status("t1") == "pending"


@pytest.mark.rule("13.resolution.key")
@pytest.mark.parametrize(("digest", "names"), [(KEY.digest, ("t2",)), ("another request", ())])
def test_a_task_of_an_expired_key_names_the_one_that_does_the_same(
    gateway: Gateway, digest: str, names: tuple[str, ...]
) -> None:
    gateway.start_once("t1")
    gateway.start_once("t2", 3601, replace(KEY, digest=digest))
    assert gateway.store.records(["t1"], at(3601))["t1"].record.overtaken == names
