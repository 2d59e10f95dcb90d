"""protocol §4 and §5.8: a full batch leaves at once, other deliveries within 50 ms; receipts have the errors."""

import threading
from typing import Literal

import pytest
from botocore.exceptions import ClientError

from asya.function.aws.outbox import Outbox, SendError, SendRefusedError, send_error
from asya.function.hop import Delivery
from asya.testing.services.direct import MemorySqs
from asya.testing.services.queues import Refusal


def make(sqs: MemorySqs, *, threaded: bool = True) -> Outbox:
    return Outbox(sqs, lambda actor: f"https://sqs.example/1/asya-shop-{actor}", threaded=threaded)  # type: ignore[arg-type]


def delivery(actor: str = "post", text: str = "{}", **more: object) -> Delivery:
    return Delivery(actor, text.encode(), "next", **more)  # type: ignore[arg-type]


def test_a_flush_sends_by_queue_and_resolves_every_receipt() -> None:
    sqs = MemorySqs()
    outbox = make(sqs)
    receipts = [outbox.send(delivery(actor, f'"{n}"')) for n in range(4) for actor in ("post", "rescue")]
    outbox.flush()
    assert [receipt.problem for receipt in receipts] == [None] * 8
    assert [sent.body for sent in sqs.sent["asya-shop-post"]] == ['"0"', '"1"', '"2"', '"3"']
    assert sorted(sqs.requests) == [("asya-shop-post", 4), ("asya-shop-rescue", 4)]


def test_delay_and_group_travel() -> None:
    sqs = MemorySqs()
    outbox = make(sqs)
    outbox.send(delivery(delay=900, group="acme"))
    outbox.flush()
    assert (sqs.sent["asya-shop-post"][0].delay, sqs.sent["asya-shop-post"][0].group) == (900, "acme")


def test_ten_of_a_queue_leave_without_waiting() -> None:
    sqs = MemorySqs()
    outbox = make(sqs)
    receipts = [outbox.send(delivery()) for _ in range(10)]
    assert all(receipt.resolved.is_set() for receipt in receipts)
    assert sqs.requests == [("asya-shop-post", 10)]


@pytest.mark.rule("5.8")
def test_lingering_deliveries_leave_without_a_flush() -> None:
    sqs = MemorySqs()
    receipt = make(sqs).send(delivery())
    assert sqs.wait_until_sent("asya-shop-post")
    assert receipt.resolved.wait(60)
    assert receipt.problem is None


@pytest.mark.rule("5.8.within-50-ms")
def test_lingering_deliveries_are_sent_within_50_ms() -> None:
    """Measures the intended wait of the outbox, because a busy machine adds delays of its own."""
    waits: list[float] = []

    class Watched(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            if timeout is not None:
                waits.append(timeout)
            return super().wait(timeout)

    for _ in range(10):
        sqs = MemorySqs()
        outbox = make(sqs)
        outbox._changed = Watched()
        outbox.send(delivery())
        assert sqs.wait_until_sent("asya-shop-post")
    assert max(waits, default=0.0) <= 0.05


def test_large_messages_are_split_by_bytes() -> None:
    sqs = MemorySqs()
    outbox = make(sqs, threaded=False)
    for _ in range(5):
        outbox.send(delivery(text=f'"{"x" * 400_000}"'))
    outbox.flush()
    assert [count for _, count in sqs.requests] == [2, 2, 1]


def test_an_entry_that_fails_is_offered_again_and_the_others_only_once() -> None:
    sqs = MemorySqs(refuse={"asya-shop-post": [Refusal(), Refusal()]})
    outbox = make(sqs)
    receipts = [outbox.send(delivery(text=f'"{n}"')) for n in range(3)]
    outbox.flush()
    assert [receipt.problem for receipt in receipts] == [None] * 3
    assert sorted(sent.body for sent in sqs.sent["asya-shop-post"]) == ['"0"', '"1"', '"2"']
    assert [count for _, count in sqs.requests] == [3, 2]


@pytest.mark.parametrize(
    ("refusal", "calls", "message"),
    [
        (Refusal(), 3, "InternalError"),
        (Refusal(code="InvalidMessageContents", sender_fault=True), 1, "InvalidMessageContents"),
        (Refusal("call", "ThrottlingException"), 1, "ThrottlingException"),
        (Refusal("silence"), 3, "gave no result"),
    ],
)
def test_the_receipt_has_the_error_of_a_refused_delivery(refusal: Refusal, calls: int, message: str) -> None:
    sqs = MemorySqs(refuse_always={"asya-shop-post": refusal})
    outbox = make(sqs)
    lost, kept = outbox.send(delivery()), outbox.send(delivery("rescue"))
    outbox.flush()
    assert isinstance(lost.problem, SendError)
    assert message in str(lost.problem)
    assert "'post'" in str(lost.problem)
    assert kept.problem is None
    # The double counts each call once; the SDK's own retries are not visible here.
    assert sqs.calls.count("asya-shop-post") == calls


@pytest.mark.rule("13.problem")
@pytest.mark.parametrize(
    "code", ["AccessDenied", "AWS.SimpleQueueService.NonExistentQueue", "KMS.AccessDeniedException"]
)
@pytest.mark.parametrize("kind", ["call", "entry"])
@pytest.mark.parametrize("sender_fault", [True, False])
def test_a_refusal_that_lasts_is_told_apart(kind: Literal["call", "entry"], code: str, sender_fault: bool) -> None:
    """Whether SQS refuses the whole request or one entry; a second try would change nothing."""
    sqs = MemorySqs(refuse_always={"asya-shop-post": Refusal(kind, code, sender_fault)})
    outbox = make(sqs)
    receipt = outbox.send(delivery())
    outbox.flush()
    assert isinstance(receipt.problem, SendRefusedError)
    refusal = receipt.problem
    assert (refusal.actor, refusal.queue, refusal.code) == ("post", "asya-shop-post", code)
    assert sqs.calls == ["asya-shop-post"]


@pytest.mark.rule("13.problem")
@pytest.mark.rule("13.problem")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "User: arn:aws:sts::123456789012:assumed-role/a/b is not authorized to perform: sqs:sendmessage on resource: "
            "arn:aws:sqs:eu-north-1:123456789012:q with an explicit deny in a resource-based policy",
            "with an explicit deny in a resource-based policy",
        ),
        (
            "User: arn:… is not authorized to perform: sqs:sendmessage because no identity-based policy allows the "
            "sqs:sendmessage action",
            "because no identity-based policy allows the sqs:sendmessage action",
        ),
        ("Access to the resource is denied.", ""),
    ],
)
def test_a_refusal_names_the_kind_of_policy_and_no_role(text: str, reason: str) -> None:
    error = ClientError({"Error": {"Code": "AccessDenied", "Message": text}}, "SendMessageBatch")
    refused = send_error("ship", "https://sqs/1/asya-shop-ship", error)
    assert isinstance(refused, SendRefusedError)
    assert refused.reason == reason


def test_the_refusal_of_one_entry_concerns_no_other() -> None:
    sqs = MemorySqs(refuse={"asya-shop-post": [Refusal(code="AccessDenied", sender_fault=True), Refusal()]})
    outbox = make(sqs)
    receipts = [outbox.send(delivery(text=f'"{n}"')) for n in range(3)]
    outbox.flush()
    assert [type(receipt.problem) for receipt in receipts] == [SendRefusedError, type(None), type(None)]
    assert [sent.body for sent in sqs.sent["asya-shop-post"]] == ['"2"', '"1"']


@pytest.mark.parametrize("bad", [delivery(delay=901), Delivery("post", b"\xff", "next")], ids=["delay", "bytes"])
def test_a_delivery_that_cannot_be_sent_harms_no_other_and_no_later_flush(bad: Delivery) -> None:
    sqs = MemorySqs()
    outbox = make(sqs)
    lost = outbox.send(bad)
    others = [outbox.send(delivery(actor)) for actor in ("rescue", "prep")]
    outbox.flush()
    assert isinstance(lost.problem, SendError)
    assert [receipt.problem for receipt in others] == [None, None]
    again = outbox.send(delivery())
    outbox.flush()
    assert again.problem is None


def test_a_delivery_that_cannot_be_prepared_is_not_sent() -> None:
    def refuse(_: Delivery) -> Delivery:
        raise OSError("S3 is down")

    sqs = MemorySqs()
    outbox = Outbox(sqs, str, refuse)  # type: ignore[arg-type]
    receipt = outbox.send(delivery())
    outbox.flush()
    assert str(receipt.problem) == "S3 is down"
    assert sqs.requests == []


def test_many_threads_lose_nothing_and_never_lock_up() -> None:
    sqs = MemorySqs()
    outbox = make(sqs)

    def work(number: int) -> None:
        for n in range(60):
            outbox.send(delivery(f"a{n % 3}", f'"{number}-{n}"'))
            if n % 7 == 0:
                outbox.flush()

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    outbox.flush()
    bodies = [sent.body for queue in sqs.sent.values() for sent in queue]
    assert len(bodies) == len(set(bodies)) == 360


def test_a_flush_waits_for_what_another_thread_is_just_sending() -> None:
    class Slow(MemorySqs):
        def send_message_batch(self, **request: object) -> dict[str, object]:
            started.set()
            assert go_on.wait(60)
            return super().send_message_batch(**request)  # type: ignore[arg-type]

    started, go_on = threading.Event(), threading.Event()
    outbox = make(Slow())
    receipt = outbox.send(delivery())
    assert started.wait(60)  # the background thread has it
    threading.Timer(0.02, go_on.set).start()
    outbox.flush()
    assert receipt.resolved.is_set()
