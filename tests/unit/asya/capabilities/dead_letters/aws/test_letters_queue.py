"""A dead-letter queue on an emulated SQS: a scan returns each message once and loses none."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from asya.capabilities.dead_letters.aws import letters as dead_letter_queue
from asya.capabilities.dead_letters.aws.letters import DeadLetterQueue

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> "Iterator[SQSClient]":
    monkeypatch.setattr(dead_letter_queue, "WAIT_SECONDS", 0)
    with mock_aws():
        yield boto3.Session("testing", "testing", region_name="eu-west-1").client("sqs")


@pytest.fixture
def url(sqs: "SQSClient") -> str:
    return sqs.create_queue(QueueName="asya-shop-infer-dlq")["QueueUrl"]


def bodies(queue: DeadLetterQueue) -> list[str]:
    return [each.arrival.body.decode() for some in queue.scan(hide_seconds=30) for each in some]


def test_a_look_sees_every_message_once(sqs: "SQSClient", url: str) -> None:
    for number in range(23):
        sqs.send_message(QueueUrl=url, MessageBody=f"body-{number}")
    queue = DeadLetterQueue(sqs, url)
    assert sorted(bodies(queue)) == sorted(f"body-{number}" for number in range(23))
    assert (queue.count().visible, queue.count().hidden, queue.count().total) == (0, 23, 23)


def test_what_was_put_back_is_seen_again_and_what_was_removed_is_not(sqs: "SQSClient", url: str) -> None:
    for number in range(12):
        sqs.send_message(QueueUrl=url, MessageBody=f"body-{number}")
    queue = DeadLetterQueue(sqs, url)
    seen = [each for some in queue.scan(hide_seconds=30) for each in some]
    queue.delete(seen[0])
    queue.release([message.receipt_handle for message in seen])
    again = bodies(queue)
    assert len(again) == 11
    assert seen[0].arrival.body.decode() not in again


def test_a_message_is_told_as_it_arrived(sqs: "SQSClient", url: str) -> None:
    sent = sqs.send_message(QueueUrl=url, MessageBody="täxt")["MessageId"]
    ((seen,),) = DeadLetterQueue(sqs, url).scan(hide_seconds=30)
    assert (seen.message_id, seen.arrival.body, seen.arrival.size) == (sent, "täxt".encode(), 5)
    assert (seen.arrival.receive_count, seen.arrival.sent_at.year > 2000, seen.group) == (1, True, None)


def test_a_look_may_be_ended(sqs: "SQSClient", url: str) -> None:
    for number in range(23):
        sqs.send_message(QueueUrl=url, MessageBody=f"body-{number}")
    answers = iter([True, False])
    pages = list(DeadLetterQueue(sqs, url).scan(hide_seconds=30, may_continue=lambda: next(answers)))
    assert len(pages) == 1
    assert len(pages[0]) <= 10


def test_what_comes_into_sight_again_ends_the_look_and_is_put_back(sqs: "SQSClient", url: str) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="body")
    queue = DeadLetterQueue(sqs, url)
    assert bodies_of(queue, hide_seconds=0) == ["body"]
    assert queue.count().visible == 1


def bodies_of(queue: DeadLetterQueue, hide_seconds: int) -> list[str]:
    return [each.arrival.body.decode() for some in queue.scan(hide_seconds=hide_seconds) for each in some]
