"""protocol §9.slice-ended: how many messages the end of a dead letter costs, whatever its header says."""

import json
import random

import pytest

from asya.protocol.headers import MAX_ENCLOSING_SETS
from tests.doubles.dead_letters import DlqWorld
from tests.doubles.envelopes import message
from tests.doubles.nested_sets import DEPTHS, nested, notified


@pytest.mark.rule("9.slice-ended", "9.nesting.depth")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("depth", DEPTHS)
def test_a_dead_letter_sends_one_message_to_each_set_and_none_for_a_header_that_is_too_deep(
    dlq_world: DlqWorld, depth: int, seed: int
) -> None:
    header = nested(depth, random.Random(seed), ("x-fan-in",))
    dlq_world.put("infer", "m-1", message(headers={"x-asya-fan-in": header}))
    dlq_world.scan()
    told = [("x-fan-in", json.loads(each.body)["set_id"]) for each in dlq_world.world.messages("x-fan-in")]
    assert len(told) <= MAX_ENCLOSING_SETS + 1
    assert sorted(told) == sorted(notified(header))
