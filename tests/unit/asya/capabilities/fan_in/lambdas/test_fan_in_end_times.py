"""protocol §11: the success of a slice has the time of its claim, whenever its report leaves."""

from datetime import timedelta

import pytest

from asya.protocol.times import format_time
from tests.doubles.fan_in_sets import Start, child, numbers


@pytest.mark.rule("11.sink.claimed-at", "13.cancel")
def test_a_redelivery_reports_a_slice_with_the_time_of_its_claim(start: Start) -> None:
    """A cancellation between claim and report loses (§13.cancel)."""
    mesh = start()
    mesh.start(numbers(2))
    first = child(1)
    mesh.world.gateway.item_status[first, "succeeded"] = 503
    mesh.run(until=timedelta(seconds=1))
    canceled_at = format_time(mesh.clock.now())
    del mesh.world.gateway.item_status[first, "succeeded"]
    mesh.run(until=timedelta(minutes=2))
    times = [event.at for event in mesh.world.gateway.events if (event.id, event.status) == (first, "succeeded")]
    assert len(times) > 1
    assert set(times) == {times[0]}
    assert times[0] < canceled_at
