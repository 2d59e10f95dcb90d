"""The slots of a sweep are one message."""

from datetime import UTC, datetime

import pytest

from asya.capabilities.triggers.aws.queue_senders import SlotSender
from asya.capabilities.triggers.messages import UnusableMessageError, read_occurrences
from asya.protocol.times import format_time
from asya.protocol.triggers import Trigger
from asya.testing.services.direct import MemorySqs
from tests.doubles.envelopes import mesh

QUEUE = "asya-shop-x-triggers"
MESH = mesh(triggers={"hourly": Trigger(route=("infer",), cron="0 * * * *")})
SLOTS = [datetime(2026, 11, 25, hour, tzinfo=UTC) for hour in range(12)]


@pytest.mark.rule("16.overlap.slots", "16.messages")
def test_16_the_slots_of_a_sweep_are_one_message_in_order() -> None:
    """A queue keeps no order, and several processes take its messages."""
    sqs = MemorySqs()
    sender = SlotSender(sqs, f"https://sqs/1/{QUEUE}")  # type: ignore[arg-type]
    for slots in (SLOTS, SLOTS[:1], []):
        sender.send("hourly", slots)
    read = [read_occurrences(message.body.encode(), MESH) for message in sqs.sent[QUEUE]]
    assert [[each.started_by.slot for each in occurrences] for occurrences in read] == [
        [format_time(slot) for slot in SLOTS],
        [format_time(SLOTS[0])],
    ]


@pytest.mark.rule("16.messages")
def test_16_a_message_with_a_time_that_is_no_slot_starts_nothing() -> None:
    """Also if the others are slots."""
    body = b'{"trigger": "hourly", "slot": "2026-11-25T01:00:00Z", "then": ["2026-11-25T02:30:00Z"]}'
    with pytest.raises(UnusableMessageError, match="2026-11-25T02:30:00"):
        read_occurrences(body, MESH)
