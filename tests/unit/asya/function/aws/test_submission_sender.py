"""protocol §4 and §13, POST: the first message of a task, and the outcome of its send."""

from __future__ import annotations

import json

import pytest

from asya.function.aws.claim_check import ClaimCheck
from asya.function.aws.submission_sender import NotSentError, SubmissionSender, TooLargeError
from asya.function.hop import Delivery
from asya.protocol.codec import decode
from asya.testing.services.direct import MemoryS3, MemorySqs
from tests.doubles.envelopes import message

LIMIT = 2_000


def bodies(queue: MemorySqs) -> list[bytes]:
    """The messages that the actor has got."""
    return [sent.body.encode() for sent in queue.sent["infer"]]


def sender(queue: MemorySqs, bucket: MemoryS3) -> SubmissionSender:
    claim_check = ClaimCheck(bucket, "bucket", LIMIT, "inbox/")  # type: ignore[arg-type]
    return SubmissionSender(queue, lambda actor: f"https://sqs/{actor}", claim_check.offload)  # type: ignore[arg-type]


@pytest.mark.rule("4.claim-check.gateway")
def test_4_a_large_payload_is_stored_under_inbox() -> None:
    queue, bucket = MemorySqs(), MemoryS3()
    payload = {"text": "x" * (2 * LIMIT)}
    sender(queue, bucket).send(Delivery("infer", message(payload=payload), "next"))
    ((key, body),) = bucket.objects.items()
    assert key.startswith("inbox/")
    assert json.loads(body) == payload
    (sent,) = bodies(queue)
    assert len(sent) <= LIMIT
    reference = decode(sent).header("x-asya-payload-ref")
    assert isinstance(reference, dict)
    assert reference["key"] == key


def test_a_small_message_stays_unchanged() -> None:
    queue, bucket = MemorySqs(), MemoryS3()
    body = message(payload={"text": "x"})
    sender(queue, bucket).send(Delivery("infer", body, "next"))
    assert (bodies(queue), bucket.objects) == ([body], {})


def test_a_message_whose_payload_cannot_be_stored_is_not_sent() -> None:
    queue, bucket = MemorySqs(), MemoryS3(fails=lambda *_: True)
    with pytest.raises(NotSentError, match="could not be stored"):
        sender(queue, bucket).send(Delivery("infer", message(payload="x" * (2 * LIMIT)), "next"))
    assert bodies(queue) == []


def test_headers_that_are_too_large_are_the_callers_error() -> None:
    queue = MemorySqs()
    with pytest.raises(TooLargeError, match="even without its payload"):
        sender(queue, MemoryS3()).send(Delivery("infer", message(headers={"note": "x" * (2 * LIMIT)}), "next"))
    assert bodies(queue) == []
