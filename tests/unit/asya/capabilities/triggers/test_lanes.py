"""The lanes of triggers: which occurrences share one."""

import pytest
from msgspec import Raw

from asya.capabilities.triggers.lanes import LaneKey, lane_of
from asya.capabilities.triggers.occurrences import Occurrence
from asya.protocol.task import StartedBy
from asya.protocol.triggers import Trigger

TRIGGER = Trigger(route=("greet",), overlap="queue", by="/order/id")


def lane(payload: bytes, trigger: Trigger = TRIGGER, name: str = "orders") -> LaneKey:
    return lane_of(Occurrence(name, "event 1", Raw(payload), StartedBy(kind="trigger", name=name)), trigger)


@pytest.mark.rule("16.lane")
def test_16_a_number_and_its_text_are_two_lanes() -> None:
    number, text = lane(b'{"order":{"id":1}}'), lane(b'{"order":{"id":"1"}}')
    assert number != text
    assert lane(b'{"paid":true,"order":{"id":1}}') == number
    assert lane(b'{"order":{"id":1}}', name="bills") != number


@pytest.mark.rule("16.lane")
@pytest.mark.parametrize("payload", [b"{}", b"[]", b"7", b'{"order":[1]}', b'{"order":{"id":null}}'])
def test_16_occurrences_without_a_value_share_a_lane(payload: bytes) -> None:
    assert lane(payload) == lane(b"{}")
