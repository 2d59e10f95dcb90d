"""protocol §1.max_children: jobs that give too many children."""

from collections.abc import Iterator

import pytest

from asya.function.hop import Delivery
from asya.heavy.results import deliveries
from asya.protocol.job_runs import ResultFrame, ResultHead
from tests.doubles.envelopes import hop, raw
from tests.doubles.outcomes import LATER, envelope_in

LIMIT = 3


def routed(frames: int, *, first: int = 0, limit: int = LIMIT) -> list[Delivery | None]:
    """What leaves for a result with this many frames, from a delivery on."""
    head = ResultHead(index=0, end="done", frames=frames, duration_ms=1.0)
    results: Iterator[ResultFrame] = (ResultFrame(payload=raw(number)) for number in range(frames))
    return list(deliveries(hop(max_children=limit), head, results, first=first, now=LATER, jitter=0.0))


@pytest.mark.rule("1.max_children")
def test_1_max_children_as_many_as_the_mesh_allows_leave() -> None:
    assert [each.actor for each in routed(4) if each] == ["post"] * 4


@pytest.mark.rule("1.max_children")
def test_1_max_children_of_too_many_none_leaves() -> None:
    (delivery,) = routed(5)
    assert delivery is not None
    assert delivery.actor == "x-sump"
    status = envelope_in(delivery).status
    assert status is not None
    assert (status.phase, status.reason) == ("failed", "MaxChildren")
    assert status.error is not None
    assert "actor 'infer' gave 4 children in one hop; this mesh allows 3" in status.error.message
    assert "max_children: 4" in status.error.message


@pytest.mark.rule("1.max_children")
def test_1_max_children_a_repetition_after_the_end_sends_nothing_more() -> None:
    assert routed(5, first=1) == []


@pytest.mark.rule("1.max_children")
def test_1_max_children_children_that_another_limit_allowed_go_on() -> None:
    assert [each.actor for each in routed(6, first=4) if each] == ["post"] * 2
