"""What operators ask for goes to the queue of triggers, or the caller learns that it did not."""

import pytest
from botocore.exceptions import EndpointConnectionError

from asya.capabilities.triggers.aws.queue_senders import OperatorQueue
from asya.protocol.api_errors import ApiError


class Sqs:
    """A client of SQS that keeps its calls."""

    def __init__(self) -> None:
        self.calls: list[dict[str, str]] = []
        self.is_down = False

    def send_message(self, **call: str) -> None:
        if self.is_down:
            raise EndpointConnectionError(endpoint_url="https://sqs")
        self.calls.append(call)


def test_a_message_goes_to_the_queue_or_is_an_error_of_503() -> None:
    sqs = Sqs()
    queue = OperatorQueue(sqs, "https://sqs/123/asya-shop-x-triggers")  # type: ignore[arg-type]
    queue.send('{"fire":"ü"}'.encode())
    assert sqs.calls == [{"QueueUrl": "https://sqs/123/asya-shop-x-triggers", "MessageBody": '{"fire":"ü"}'}]
    sqs.is_down = True
    with pytest.raises(ApiError, match="try again") as caught:
        queue.send(b"{}")
    assert (caught.value.status, caught.value.code) == (503, "unavailable")
