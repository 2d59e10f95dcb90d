"""The event source of a queue: what it deletes, and what comes again."""

from collections.abc import Mapping
from typing import Any

import pytest

from asya_local.dev.event_sources import EventSource
from asya_local.dev.handlers import NotLoadedError, WorkerDiedError, WorkerFailedError


class FakeSqs:
    """A queue with messages, each received once."""

    def __init__(self, *ids: str) -> None:
        self.waiting = list(ids)
        self.deleted: list[str] = []
        self.released: list[str] = []

    def receive_message(self, *, MaxNumberOfMessages: int, **_: Any) -> dict[str, Any]:  # noqa: N803 - AWS's name
        taken, self.waiting = self.waiting[:MaxNumberOfMessages], self.waiting[MaxNumberOfMessages:]
        return {"Messages": [_message(each) for each in taken]} if taken else {}

    def delete_message_batch(self, *, Entries: list[dict[str, str]], **_: Any) -> None:  # noqa: N803
        self.deleted += [each["ReceiptHandle"] for each in Entries]

    def change_message_visibility_batch(self, *, Entries: list[dict[str, Any]], **_: Any) -> None:  # noqa: N803
        assert all(each["VisibilityTimeout"] == 0 for each in Entries)
        self.released += [each["ReceiptHandle"] for each in Entries]


def _message(name: str) -> dict[str, Any]:
    attributes = {"SenderId": "AIDAUSER", "ApproximateReceiveCount": "1"}
    return {"MessageId": name, "ReceiptHandle": name, "Body": f"body of {name}", "Attributes": attributes}


def run(sqs: FakeSqs, process: Any, *, batch_size: int = 10) -> list[tuple[str, str]]:
    """Process the messages of a queue, and return what the author was told."""
    told: list[tuple[str, str]] = []

    def tell(level: str, text: str) -> None:
        told.append((level, text))

    source = EventSource(sqs, "check", "asya-shop-check", "https://queue", batch_size, process, tell)
    while sqs.waiting:
        source.poll()
    return told


def test_a_batch_that_arrives_after_the_end_comes_again() -> None:
    sqs = FakeSqs("a")
    source = EventSource(sqs, "check", "asya-shop-check", "https://queue", 10, lambda _: set(), lambda *_: None)
    source.end()
    source.poll()
    assert (sqs.deleted, sqs.released) == ([], ["a"])


def test_handled_messages_are_deleted_and_failed_ones_stay() -> None:
    events: list[Mapping[str, Any]] = []

    def process(event: Mapping[str, Any]) -> set[str]:
        events.append(event)
        return {"b"}

    sqs = FakeSqs("a", "b", "c")
    assert run(sqs, process, batch_size=2) == []
    assert (sqs.deleted, sqs.released) == (["a", "c"], [])
    assert [len(event["Records"]) for event in events] == [2, 1]
    record = events[0]["Records"][0]
    assert (record["messageId"], record["body"], record["attributes"]["SenderId"]) == ("a", "body of a", "AIDAUSER")
    assert record["eventSourceARN"] == "arn:aws:sqs:us-east-1:000000000000:asya-shop-check"


@pytest.mark.parametrize(
    ("error", "is_released", "words"),
    [
        (WorkerDiedError(), True, "its process ended in the middle of a batch"),
        (NotLoadedError(), True, ""),
        (WorkerFailedError("Traceback: KeyError"), False, "its function failed: Traceback: KeyError"),
        (ValueError("no"), False, "its function failed: ValueError: no"),
    ],
)
def test_a_batch_without_an_answer_is_not_deleted(error: Exception, is_released: bool, words: str) -> None:
    def process(_event: Mapping[str, Any]) -> set[str]:
        raise error

    sqs = FakeSqs("a", "b")
    told = run(sqs, process)
    assert sqs.deleted == []
    assert sqs.released == (["a", "b"] if is_released else [])
    assert [text for _, text in told] == (
        [f"check: {words}, which comes again"] if "middle" in words else [f"check: {words}"] if words else []
    )
