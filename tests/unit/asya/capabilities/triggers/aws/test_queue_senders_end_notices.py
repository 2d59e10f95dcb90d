"""What the writers of ends tell `x-triggers`, and that a failure loses nothing else."""

import json

import pytest
from msgspec.structs import replace

from asya.capabilities.triggers.aws.queue_senders import EndNotices
from asya.protocol.task import StartedBy, TaskRecord
from asya.protocol.triggers import Trigger
from asya.testing.services.direct import MemorySqs
from asya.testing.services.queues import Refusal

AT = "2026-11-25T02:00:00.000000Z"
RECORD = TaskRecord(
    id="t", status="succeeded", created_at=AT, updated_at=AT, started_by=StartedBy(kind="trigger", name="nightly")
)
QUEUE = "asya-shop-x-triggers"
TRIGGERS = {"nightly": Trigger(route=("greet",), overlap="queue")}


def notices(sqs: MemorySqs, warnings: list[str]) -> EndNotices:
    """The notices to the queue of triggers."""
    return EndNotices(sqs, f"https://sqs/1/{QUEUE}", TRIGGERS, warnings.append)  # type: ignore[arg-type]


@pytest.mark.rule("16.ends")
def test_16_ends_are_sent_in_batches() -> None:
    """Ends of tasks that nobody waits for need no call."""
    sqs, warnings = MemorySqs(), list[str]()
    notices(sqs, warnings).send([replace(RECORD, started_by=None)])
    assert sqs.calls == []
    notices(sqs, warnings).send([replace(RECORD, id=f"t{number}") for number in range(12)])
    assert sqs.requests == [(QUEUE, 10), (QUEUE, 2)]
    first = json.loads(sqs.sent[QUEUE][0].body)
    assert (first, warnings) == ({"ended": "t0", "kind": "trigger", "name": "nightly"}, [])


@pytest.mark.rule("16.ends.lost")
@pytest.mark.parametrize("refusal", [Refusal("call"), Refusal("entry")])
def test_16_a_notice_that_is_not_sent_is_logged_only(refusal: Refusal) -> None:
    """The report of the end counts all the same."""
    sqs, warnings = MemorySqs(refuse_always={QUEUE: refusal}), list[str]()
    notices(sqs, warnings).send([RECORD])
    assert len(warnings) == 1
    assert "the sweep finds them" in warnings[0]
