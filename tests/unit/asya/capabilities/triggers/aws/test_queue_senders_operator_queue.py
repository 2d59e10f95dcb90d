"""What operators ask for goes to the queue of triggers, or the caller learns that it did not."""

import pytest

from asya.capabilities.triggers.aws.queue_senders import OperatorQueue
from asya.protocol.api_errors import ApiError
from asya.testing.services.direct import MemorySqs
from asya.testing.services.faults import Fault


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.ANSWER_LOST])
def test_a_message_goes_to_the_queue_or_is_an_error_of_503(fault: Fault) -> None:
    sqs = MemorySqs()
    queue = OperatorQueue(sqs, "https://sqs/123/asya-shop-x-triggers")  # type: ignore[arg-type]
    queue.send('{"fire":"ü"}'.encode())
    assert {name: [sent.body for sent in queue] for name, queue in sqs.sent.items()} == {
        "asya-shop-x-triggers": ['{"fire":"ü"}']
    }
    sqs.process.faults.plans.append(lambda *_: fault)
    with pytest.raises(ApiError, match="try again") as caught:
        queue.send(b"{}")
    assert (caught.value.status, caught.value.code) == (503, "unavailable")
