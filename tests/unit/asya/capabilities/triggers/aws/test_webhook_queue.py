"""Large bodies of webhooks, which travel through S3."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.capabilities.triggers.aws.webhook_queue import WebhookBodies, WebhookQueue
from asya.capabilities.triggers.messages import UnusableMessageError
from asya.capabilities.triggers.webhooks import Delivery
from asya.testing.services.direct import MemoryS3, MemorySqs

BODY = "x" * 1024 * 1024


def sent(s3: MemoryS3, body: str = BODY) -> dict[str, Any]:
    """Send a webhook, and return its message."""
    sqs = MemorySqs()
    delivery = Delivery(key="webhook a", body=body, received_at="2026-11-25T12:00:00.000000Z")
    WebhookQueue(sqs, "url", s3, "bucket").send("hook", delivery, may_store=True)  # type: ignore[arg-type]
    [message] = sqs.sent["url"]
    return dict(json.loads(message.body))


def restored(s3: MemoryS3, message: dict[str, Any]) -> Any:
    return json.loads(WebhookBodies(s3, "bucket").restored(json.dumps(message).encode()))  # type: ignore[arg-type]


@pytest.mark.rule("16.webhooks.large")
def test_16_a_body_that_no_message_takes_is_stored_for_x_triggers_alone() -> None:
    s3 = MemoryS3()
    message = sent(s3)
    [key] = s3.objects
    assert key.startswith("inbox/x-triggers/")
    assert message["webhook"]["stored"]["key"] == key
    assert sent(s3) == message
    assert restored(s3, message)["webhook"]["body"] == BODY
    assert len(s3.objects) == 1


@pytest.mark.rule("16.webhooks.large")
def test_16_a_small_body_stays_in_its_message() -> None:
    s3 = MemoryS3()
    message = sent(s3, "{}")
    assert (message["webhook"]["body"], s3.calls) == ("{}", [])
    assert restored(s3, message) == message
    assert s3.calls == []


@pytest.mark.rule("16.webhooks.large", "16.failures")
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"key": "results/succeeded/a.json"}, "does not exist"),
        ({"key": "inbox/other/ab/c.json"}, "does not exist"),
        ({"key": "inbox/x-triggers/ab/c.json"}, "does not exist"),
        ({"size": 5}, "is another one"),
        ({"sha256": "0" * 64}, "is another one"),
    ],
)
def test_16_a_reference_to_something_else_starts_nothing(change: dict[str, object], problem: str) -> None:
    s3 = MemoryS3()
    message = sent(s3)
    s3.objects["results/succeeded/a.json"] = b"{}"
    s3.objects["inbox/other/ab/c.json"] = b"{}"
    message["webhook"]["stored"] |= change
    with pytest.raises(UnusableMessageError, match=problem):
        restored(s3, message)


@pytest.mark.rule("16.webhooks.large")
def test_16_an_outage_of_s3_leaves_the_message_on_its_queue() -> None:
    s3 = MemoryS3()
    message = sent(s3)
    s3.fails = lambda action, _: action == "get"
    with pytest.raises(ClientError):
        restored(s3, message)


def test_other_messages_stay_as_they_are() -> None:
    for body in (b"{", b'{"trigger": "a", "slot": "b"}', b"\xff"):
        assert WebhookBodies(MemoryS3(), "bucket").restored(body) == body  # type: ignore[arg-type]
