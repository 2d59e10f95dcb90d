"""protocol §4 and §13, POST: the first message of a task, and the outcome of its send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.function.aws.claim_check import ClaimCheck
from asya.function.aws.submission_sender import NotSentError, SubmissionSender, TooLargeError
from asya.function.hop import Delivery
from asya.protocol.codec import decode
from tests.doubles.envelopes import message

LIMIT = 2_000


class Bucket:
    """Stores objects, or refuses them."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.objects: dict[str, bytes] = {}
        self.refuses = refuses

    def put_object(self, *, Key: str, Body: bytes, **_: Any) -> None:  # noqa: N803
        if self.refuses:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "PutObject")
        self.objects[Key] = Body


class Queue:
    """Accepts messages."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def send_message(self, *, MessageBody: str, **_: Any) -> None:  # noqa: N803
        self.bodies.append(MessageBody.encode())


def sender(queue: Queue, bucket: Bucket) -> SubmissionSender:
    claim_check = ClaimCheck(bucket, "bucket", LIMIT, "inbox/")  # type: ignore[arg-type]
    return SubmissionSender(queue, lambda actor: f"https://sqs/{actor}", claim_check.offload)  # type: ignore[arg-type]


@pytest.mark.rule("4.claim-check.gateway")
def test_4_a_large_payload_is_stored_under_inbox() -> None:
    queue, bucket = Queue(), Bucket()
    payload = {"text": "x" * (2 * LIMIT)}
    sender(queue, bucket).send(Delivery("infer", message(payload=payload), "next"))
    ((key, body),) = bucket.objects.items()
    assert key.startswith("inbox/")
    assert json.loads(body) == payload
    (sent,) = queue.bodies
    assert len(sent) <= LIMIT
    reference = decode(sent).header("x-asya-payload-ref")
    assert isinstance(reference, dict)
    assert reference["key"] == key


def test_a_small_message_stays_unchanged() -> None:
    queue, bucket = Queue(), Bucket()
    body = message(payload={"text": "x"})
    sender(queue, bucket).send(Delivery("infer", body, "next"))
    assert (queue.bodies, bucket.objects) == ([body], {})


def test_a_message_whose_payload_cannot_be_stored_is_not_sent() -> None:
    queue, bucket = Queue(), Bucket(refuses=True)
    with pytest.raises(NotSentError, match="could not be stored"):
        sender(queue, bucket).send(Delivery("infer", message(payload="x" * (2 * LIMIT)), "next"))
    assert queue.bodies == []


def test_headers_that_are_too_large_are_the_callers_error() -> None:
    queue = Queue()
    with pytest.raises(TooLargeError, match="even without its payload"):
        sender(queue, Bucket()).send(Delivery("infer", message(headers={"note": "x" * (2 * LIMIT)}), "next"))
    assert queue.bodies == []
