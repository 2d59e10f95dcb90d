"""protocol §4: the starts of a message are counted before the work, and an outage is no start."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec import structs

from asya.function.aws.failed_messages import FailedMessages, StartMarks
from asya.function.aws.outages import ServiceHealth
from asya.function.aws.receipt import Receipt
from asya.function.aws.telemetry import Telemetry
from asya.function.hop import PROBLEM, given_up_body
from asya.function.lambdas.batch import BatchProcessor, Record, records
from asya.function.lambdas.starts import Starts
from asya.function.nack import MAX_NACK_SECONDS, MAX_OUTAGE_NACK_SECONDS
from asya.protocol.codec import ParseError
from asya.testing.dynamo.tables import MemoryDynamo, Table
from asya.testing.services.direct import MemorySqs
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import message
from tests.doubles.mesh_world import batch_failures, sqs_event

LETTERS = "asya-shop-infer-dlq"
OFF = ClientError(
    {"Error": {"Code": "SlowDown", "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 503}},  # type: ignore[typeddict-unknown-key]
    "GetObject",
)


class CountingDynamo(MemoryDynamo):
    """Counts the writes, and fails them on demand."""

    def __init__(self) -> None:
        super().__init__({"asya-shop-sink": Table()})
        self.writes = 0
        self.is_off = False
        self.loses_answers = False

    def update_item(self, **request: Any) -> dict[str, Any]:
        """See `MemoryDynamo`."""
        self.writes += 1
        if self.is_off:
            if self.loses_answers and "ADD" in request["UpdateExpression"]:
                super().update_item(**request)
            raise OFF
        return super().update_item(**request)


class Function:
    """A function that takes the batches of `infer`, with its queue."""

    def __init__(self, limit: int = 5) -> None:
        self.sqs, self.dynamodb = MemorySqs(), CountingDynamo()
        self.health = ServiceHealth(lambda: 1000.0)
        self.calls: list[str] = []
        self.noted: list[str] = []
        self.notes_are_off = False
        telemetry = Telemetry("shop", "infer")
        marks = StartMarks(self.dynamodb, "asya-shop-sink", "infer")  # type: ignore[arg-type]
        failed = FailedMessages(self.sqs, f"https://sqs.example/1/{LETTERS}")  # type: ignore[arg-type]
        starts = Starts(
            "infer",
            limit,
            marks,
            failed,
            self.health,
            telemetry,
            lambda: 1000.0,
            self.note_sender,
            lambda arrival: given_up_body(arrival, "infer", lambda envelope, _: envelope),
        )
        self.worker = BatchProcessor(
            self.sqs,  # type: ignore[arg-type]
            "https://sqs.example/1/asya-shop-infer",
            (),
            telemetry,
            starts,
            lambda: 0.5,
        )

    def note_sender(self, body: bytes, _sender: str) -> None:
        """Note the sender of a message that is not sent yet."""
        if self.notes_are_off:
            raise OFF
        assert body.decode() not in [letter.body for letter in self.letters]
        self.noted.append(body.decode())

    def receive(
        self, do: Callable[[Record], None], *counts: int, change: Callable[[Record], Record] | None = None
    ) -> Any:
        """Process messages that were received so often; return the ids of those that stay."""
        bodies = [message(id=f"env-{number}") for number in range(len(counts))]
        items = records(sqs_event(*bodies, receive_counts=dict(enumerate(counts))))

        def handle(record: Record) -> list[Receipt]:
            self.calls.append(record.message_id)
            do(record)
            return []

        return batch_failures(self.worker.process([change(item) for item in items] if change else items, handle))

    def dies(self, *counts: int, poison: str = "message-0") -> None:
        """Let the process die at a message."""

        def die(record: Record) -> None:
            if record.message_id == poison:
                raise SystemExit

        try:
            self.receive(die, *counts)
        except SystemExit:
            return

    @property
    def letters(self) -> list[Any]:
        return self.sqs.sent[LETTERS]


def nothing(_: Record) -> None:
    """Finish the message."""


def outage(_: Record) -> None:
    """Meet a service that is off."""
    raise OFF


def bug(_: Record) -> None:
    """Raise what nobody foresaw."""
    raise ZeroDivisionError("unforeseen")


@pytest.mark.rule("4.starts")
def test_4_a_first_delivery_is_free() -> None:
    function = Function()
    assert function.receive(nothing, 1, 1, 1) == []
    assert function.receive(bug, 1) == ["message-0"]
    assert function.dynamodb.writes == 0


@pytest.mark.rule("4.starts.end", "5.13")
def test_4_a_message_that_kills_its_process_has_max_receives_starts() -> None:
    function = Function()
    for count in range(1, 8):
        function.dies(count)
    assert function.calls == ["message-0"] * 5
    first, *_ = function.letters
    assert first.body == message(id="env-0").decode()
    assert first.attributes[PROBLEM]["StringValue"] == "5 starts did not come to an end"


@pytest.mark.rule("4.neighbours", "4.starts")
def test_4_the_neighbours_of_such_a_message_are_not_charged() -> None:
    """The process dies before it comes to the neighbour, which was received more often."""
    function = Function()
    for count in range(2, 6):
        function.dies(count, 20)
    assert function.calls == ["message-0"] * 4
    assert {key[0] for key in function.dynamodb.tables["asya-shop-sink"].items} == {"START#infer#message-0"}


@pytest.mark.rule("4.starts.end")
def test_4_an_error_that_nobody_foresaw_counts_as_a_start() -> None:
    function = Function()
    assert [function.receive(bug, count) for count in range(1, 7)] == [["message-0"]] * 5 + [[]]
    assert len(function.letters) == 1


@pytest.mark.rule("4.outage", "4.nack")
@pytest.mark.slow
def test_4_an_outage_uses_up_no_start_and_slows_the_queue_down() -> None:
    function = Function()
    for count in range(1, 101):
        assert function.receive(outage, count) == ["message-0"]
    assert function.letters == []
    assert function.sqs.visibility["receipt-0"] == MAX_OUTAGE_NACK_SECONDS * 0.75
    assert [function.receive(bug, count) for count in range(101, 106)] == [["message-0"]] * 4 + [[]]


@pytest.mark.rule("4.nack")
def test_4_reports_return_soon_in_an_outage_too() -> None:
    function = Function()
    function.worker = structs.replace(function.worker, slows_down=False)
    assert function.receive(outage, 100) == ["message-0"]
    assert function.sqs.visibility["receipt-0"] == MAX_NACK_SECONDS


@pytest.mark.rule("4.starts.mark")
def test_4_without_its_mark_no_redelivered_message_starts() -> None:
    function = Function()
    function.dynamodb.is_off = True
    assert function.receive(nothing, 1, 2) == ["message-1"]
    assert function.calls == ["message-0"]
    function.dynamodb.is_off = False
    assert function.receive(nothing, 3) == []


@pytest.mark.rule("4.starts.mark")
@pytest.mark.slow
def test_4_marks_whose_answers_were_lost_in_an_outage_are_taken_back_after_it() -> None:
    function = Function()
    function.dynamodb.is_off = function.dynamodb.loses_answers = True
    for count in range(2, 12):
        assert function.receive(nothing, count) == ["message-0"]
    assert function.calls == []
    function.dynamodb.is_off = False
    assert function.receive(nothing, 12) == []
    assert (function.calls, function.letters) == (["message-0"], [])


@pytest.mark.rule("4.outage.probe")
def test_4_a_redelivered_message_waits_without_work_while_a_service_is_known_to_be_off() -> None:
    function = Function()
    function.health.failed("S3", "503")
    assert function.receive(nothing, 1, 2, 3) == ["message-1", "message-2"]
    assert function.calls == ["message-0"]
    function.health.answered("S3")
    assert function.receive(nothing, 3, 4) == []


@pytest.mark.rule("4.starts.end")
def test_4_a_message_that_cannot_be_given_up_stays_until_it_can() -> None:
    function = Function()
    for count in range(1, 6):
        function.dies(count)
    function.sqs.refuse_always[LETTERS] = Refusal("call", "ServiceUnavailable")
    assert function.receive(nothing, 6) == ["message-0"]
    function.sqs.refuse_always.clear()
    assert function.receive(nothing, 7) == []
    assert (len(function.calls), len(function.letters)) == (5, 1)


@pytest.mark.rule("4.starts.end", "4.entry.moved.unseen")
def test_4_a_message_is_given_up_once_its_sender_is_noted() -> None:
    function = Function(limit=1)
    function.dies(1)
    function.notes_are_off = True
    assert function.receive(nothing, 2) == ["message-0"]
    assert (function.noted, function.letters) == ([], [])
    function.notes_are_off = False
    assert function.receive(nothing, 3) == []
    assert function.noted == [letter.body for letter in function.letters]


@pytest.mark.rule("4.starts.judged")
def test_4_a_message_that_may_not_enter_is_never_sent_anew() -> None:
    """The function would become its sender. SQS makes it a dead letter by its receives."""

    def refused(record: Record) -> Record:
        return structs.replace(
            record, arrival=structs.replace(record.arrival, refusal=ParseError("id: taken"), is_new=True)
        )

    function = Function()
    for count in range(1, 10):
        assert function.receive(bug, count, change=refused) == ["message-0"]
    assert function.letters == []


@pytest.mark.rule("4.starts.judged")
def test_4_a_message_that_nobody_can_judge_does_not_start() -> None:
    function = Function()
    assert function.receive(nothing, 2, change=lambda record: structs.replace(record, problem=OFF)) == ["message-0"]
    assert function.calls == []


@pytest.mark.rule("4.starts.single")
def test_4_a_message_that_may_start_once_is_marked_before_that_start() -> None:
    function = Function(limit=1)
    function.dies(1, 1)
    assert function.calls == ["message-0"]
    assert function.receive(nothing, 2, 2) == []
    assert function.calls == ["message-0", "message-1"]
    assert [letter.envelope.id for letter in function.letters] == ["env-0"]


@pytest.mark.rule("4.starts.single")
def test_4_an_outage_takes_the_only_start_back() -> None:
    function = Function(limit=1)
    assert function.receive(outage, 1) == ["message-0"]
    assert function.receive(nothing, 2) == []
    assert function.letters == []
