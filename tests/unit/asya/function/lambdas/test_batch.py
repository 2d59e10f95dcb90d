"""protocol §4: acknowledgement only after acceptance, and isolation of messages that crash the process."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from asya.function.aws.receipt import Receipt
from asya.function.aws.telemetry import Telemetry
from asya.function.lambdas.batch import BatchProcessor, Record, records
from asya.function.nack import MAX_NACK_SECONDS, BlockedError
from asya.testing.services.direct import MemorySqs
from tests.doubles.emf import metric_values, metrics
from tests.doubles.envelopes import message
from tests.doubles.mesh_world import batch_failures, recorded, sqs_event


@dataclass
class FakeOutlet:
    """Resolves the queued receipts at the flush."""

    waiting: list[tuple[str, Receipt]] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    flushes: list[list[str]] = field(default_factory=list)

    def hand_over(self, message_id: str) -> Receipt:
        receipt = Receipt("next")
        self.waiting.append((message_id, receipt))
        return receipt

    def flush(self) -> None:
        self.flushes.append([message_id for message_id, _ in self.waiting])
        for message_id, receipt in self.waiting:
            if message_id not in self.forgotten:
                receipt.resolve(OSError("refused") if message_id in self.refused else None)
        self.waiting = []


def worker(sqs: MemorySqs, outlet: FakeOutlet) -> BatchProcessor:
    url, telemetry = "https://sqs.example/1/asya-shop-infer", Telemetry("shop", "infer")
    return BatchProcessor(sqs, url, (outlet,), telemetry, chance=lambda: 1.0)  # type: ignore[arg-type]


def handing_over(outlet: FakeOutlet, *, raising: str = "") -> Callable[[Record], list[Receipt]]:
    def handle(record: Record) -> list[Receipt]:
        if record.message_id == raising:
            raise ZeroDivisionError("unforeseen")
        return [outlet.hand_over(record.message_id)]

    return handle


@pytest.mark.rule("4.copies-in-a-batch")
def test_a_message_that_an_event_has_twice_is_one_record() -> None:
    """Its later receive counts: only that receipt is still valid."""
    event = sqs_event("{}", "{}", "{}", receive_counts={2: 2})
    event["Records"][2] |= {"messageId": "message-0"}
    assert [(each.message_id, each.receipt_handle) for each in records(event)] == [
        ("message-0", "receipt-2"),
        ("message-1", "receipt-1"),
    ]
    event["Records"].reverse()
    assert {each.receipt_handle for each in records(event)} == {"receipt-1", "receipt-2"}


def test_the_records_of_a_recorded_event() -> None:
    first, second, third = records(recorded("sqs-redelivered"))
    assert first.message_id == "059f36b4-87a3-44ab-83d2-661975830a7d"
    assert (first.arrival.receive_count, second.arrival.receive_count, third.arrival.receive_count) == (3, 2, 1)
    assert first.arrival.sender == "AROAEXAMPLEGATEWAYROLE"
    assert first.arrival.sent_at.isoformat() == "2026-11-20T11:59:59+00:00"
    assert first.arrival.size == len(first.arrival.body)
    assert first.receipt_handle.startswith("AQEB")


def test_everything_is_flushed_once_and_acked() -> None:
    sqs, outlet = MemorySqs(), FakeOutlet()
    answer = worker(sqs, outlet).process(records(sqs_event(b"a", b"b", b"c")), handing_over(outlet))
    assert batch_failures(answer) == []
    assert outlet.flushes == [["message-0", "message-1", "message-2"]]
    assert sqs.deleted == []
    assert sqs.visibility == {}


@pytest.mark.rule("4.ack-after-acceptance")
@pytest.mark.parametrize("fate", ["refused", "forgotten"])
def test_a_refused_receipt_keeps_only_its_own_message(fate: str) -> None:
    sqs, outlet = MemorySqs(), FakeOutlet()
    getattr(outlet, fate).add("message-1")
    answer = worker(sqs, outlet).process(records(sqs_event(b"a", b"b", b"c")), handing_over(outlet))
    assert batch_failures(answer) == ["message-1"]
    assert sqs.visibility == {"receipt-1": 5}


def test_one_refused_receipt_of_several_keeps_the_message() -> None:
    outlet = FakeOutlet(refused={"second"})
    answer = worker(MemorySqs(), outlet).process(
        records(sqs_event(b"a")), lambda record: [outlet.hand_over("first"), outlet.hand_over("second")]
    )
    assert batch_failures(answer) == ["message-0"]


def test_an_unexpected_error_keeps_only_its_own_message() -> None:
    outlet = FakeOutlet()
    answer = worker(MemorySqs(), outlet).process(
        records(sqs_event(b"a", b"b", b"c")), handing_over(outlet, raising="message-0")
    )
    assert batch_failures(answer) == ["message-0"]
    assert outlet.flushes == [["message-1", "message-2"]]


@pytest.mark.rule("4.neighbours")
def test_the_line_about_a_kept_message_names_its_envelope(caplog: pytest.LogCaptureFixture) -> None:
    outlet = FakeOutlet()
    event = sqs_event(message(id="env-1"), "{}")
    for record in ("message-0", "message-1"):
        worker(MemorySqs(), outlet).process(records(event), handing_over(outlet, raising=record))
    kept = [vars(line) for line in caplog.records if line.getMessage() == "message kept on the queue"]
    assert [(line["message_id"], line["envelope_id"]) for line in kept] == [("message-0", "env-1"), ("message-1", None)]


def test_suspects_go_last_and_each_is_deleted_as_it_finishes() -> None:
    sqs, outlet = MemorySqs(), FakeOutlet()
    deleted_before: dict[str, list[str]] = {}

    def handle(record: Record) -> list[Receipt]:
        deleted_before[record.message_id] = list(sqs.deleted)
        return [outlet.hand_over(record.message_id)]

    event = sqs_event(b"a", b"b", b"c", b"d", receive_counts={0: 4, 2: 2})
    assert batch_failures(worker(sqs, outlet).process(records(event), handle)) == []
    assert deleted_before == {
        "message-1": [],
        "message-3": ["receipt-1"],
        "message-2": ["receipt-1", "receipt-3"],
        "message-0": ["receipt-1", "receipt-3", "receipt-2"],
    }
    assert sqs.deleted == ["receipt-1", "receipt-3", "receipt-2", "receipt-0"]


def test_suspects_with_equal_receive_counts_change_their_order_each_time() -> None:
    """A record after the crashing one comes before it the next time."""
    outlet = FakeOutlet()
    orders: list[list[str]] = []
    for count in (2, 3):
        order: list[str] = []

        def handle(record: Record, order: list[str] = order) -> list[Receipt]:
            order.append(record.message_id)
            return [outlet.hand_over(record.message_id)]

        event = sqs_event(b"a", b"b", b"c", receive_counts=dict.fromkeys(range(3), count))
        worker(MemorySqs(), outlet).process(records(event), handle)
        orders.append(order)
    assert orders[0] == orders[1][::-1]
    assert sorted(orders[0]) == ["message-0", "message-1", "message-2"]


@pytest.mark.parametrize("fate", ["refused", "raised"])
def test_a_suspect_that_is_kept_is_not_deleted_and_the_others_are(fate: str) -> None:
    sqs, outlet = MemorySqs(), FakeOutlet()
    if fate == "refused":
        outlet.refused.add("message-1")
    event = sqs_event(b"a", b"b", b"c", receive_counts={1: 2, 2: 3})
    handle = handing_over(outlet, raising="message-1" if fate == "raised" else "")
    assert batch_failures(worker(sqs, outlet).process(records(event), handle)) == ["message-1"]
    assert sqs.deleted == ["receipt-0", "receipt-2"]
    assert sqs.visibility == {"receipt-1": 10}


@pytest.mark.rule("4.neighbours", "5.13")
def test_a_crash_repeats_only_the_suspect() -> None:
    sqs, outlet = MemorySqs(), FakeOutlet()

    def handle(record: Record) -> list[Receipt]:
        if record.message_id == "message-0":
            raise SystemExit(1)  # as if the process were gone: nothing of ours catches it
        return [outlet.hand_over(record.message_id)]

    with pytest.raises(SystemExit):
        worker(sqs, outlet).process(records(sqs_event(b"a", b"b", receive_counts={0: 2})), handle)
    assert sqs.deleted == ["receipt-1"]


def test_errors_of_the_delete_or_the_visibility_change_no_outcome() -> None:
    sqs, outlet = (
        MemorySqs(broken={"DeleteMessage", "ChangeMessageVisibilityBatch"}),
        FakeOutlet(refused={"message-1"}),
    )
    event = sqs_event(b"a", b"b", receive_counts={0: 2, 1: 2})
    assert batch_failures(worker(sqs, outlet).process(records(event), handing_over(outlet))) == ["message-1"]


@pytest.mark.rule("4.nack")
def test_the_visibility_of_kept_messages_doubles_with_each_receive() -> None:
    sqs, outlet = MemorySqs(), FakeOutlet(refused={f"message-{n}" for n in range(12)})
    counts = dict(enumerate([1, 2, 3, 4, 5, 6, 100]))
    worker(sqs, outlet).process(records(sqs_event(*[b"x"] * 12, receive_counts=counts)), handing_over(outlet))
    assert [sqs.visibility[f"receipt-{n}"] for n in range(7)] == [5, 10, 20, 40, 80, 80, MAX_NACK_SECONDS]
    assert len(sqs.visibility) == 12


@pytest.mark.rule("4.nack")
def test_each_kept_message_is_hidden_as_long_as_its_own_error_says() -> None:
    sqs, outlet = MemorySqs(), FakeOutlet(refused={"message-1"})

    def handle(record: Record) -> list[Receipt]:
        if record.message_id == "message-0":
            raise BlockedError("no secret")
        return [outlet.hand_over(record.message_id)]

    worker(sqs, outlet).process(records(sqs_event(b"a", b"b", b"c", receive_counts={0: 2})), handle)
    assert sqs.visibility == {"receipt-0": 600, "receipt-1": 5}


def test_the_callback_runs_for_each_accepted_record() -> None:
    outlet, accepted = FakeOutlet(refused={"message-1"}), []
    worker(MemorySqs(), outlet).process(
        records(sqs_event(b"a", b"b", b"c")), handing_over(outlet), lambda record: accepted.append(record.message_id)
    )
    assert accepted == ["message-0", "message-2"]


@pytest.mark.rule("15.Redelivered")
def test_15_messages_that_were_received_before_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    made = worker(MemorySqs(), outlet := FakeOutlet())

    def crash(_: Record) -> list[Receipt]:
        raise SystemExit

    with pytest.raises(SystemExit):
        made.process(records(recorded("sqs-redelivered")), crash)
    assert metric_values(metrics(capsys), "Redelivered", actor="infer") == [2]
    made.process(records(sqs_event(b"1", b"2")), handing_over(outlet))
    made.telemetry.flush()
    assert metric_values(metrics(capsys), "Redelivered") == []
