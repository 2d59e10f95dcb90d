"""The tests of `tests/cloud/test_gateway_senders.py` on the test kit, as they are."""

from types import SimpleNamespace

import boto3
import pytest

from asya.testing.services.roles import role_id
from tests.cloud import test_gateway_senders as on_the_cloud
from tests.doubles.kit_cloud import KitCloud
from tests.simulation.same_verdict.comparable import comparable

globals().update(comparable(on_the_cloud))


@pytest.fixture(autouse=True)
def sqs_of_the_role(gateway: KitCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SQS client of the handler `send`, with the role of its actor."""
    queues, sender = gateway.kit.cloud.queues, f"{role_id('send')}:session"

    def send_message(*, QueueUrl: str, MessageBody: str) -> dict[str, str]:  # noqa: N803
        queue = QueueUrl.rpartition("/")[2]
        return {"MessageId": queues.send(queue, MessageBody, sender=None, by=sender)}

    monkeypatch.setenv("ASYA_QUEUE_URL_PREFIX", "https://sqs/")
    monkeypatch.setattr(boto3, "client", lambda _: SimpleNamespace(send_message=send_message))
