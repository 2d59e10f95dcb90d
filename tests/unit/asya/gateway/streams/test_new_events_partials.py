"""The partials that follow a cursor (`protocol §7`, FLY)."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asya.gateway.streams.stream_cursor import StreamCursor
from asya.tasks.stream_events import StreamPartial
from tests.doubles.tasks import event, hop
from tests.unit.asya.gateway.streams.task_reports import World, labels, partial, resume


@pytest.mark.rule("7.FLY.clients")
def test_partials_come_in_order_between_the_start_and_the_end_of_their_hop() -> None:
    world = World()
    world.report(*hop("t", 0)[:2])
    world.publish(partial(0, 0), partial(0, 1))
    items = world.new_events(StreamCursor())
    assert labels(items) == ["received 0", "processing 0", "partial 0.0", "partial 0.1"]
    world.publish(partial(0, 1), partial(0, 2))
    world.report(*hop("t", 0)[2:], *hop("t", 1)[:1])
    assert labels(world.new_events(resume(items))) == ["partial 0.2", "completed 0", "received 1"]


def test_a_late_partial_is_not_shown_after_a_later_one_of_its_run() -> None:
    world = World()
    world.publish(partial(1, 5))
    items = world.new_events(StreamCursor())
    assert labels(items) == ["partial 1.5", "pending"]
    assert isinstance(items[0].data, StreamPartial)
    assert items[0].data.missed == 5
    world.publish(partial(1, 4), partial(0, 0))
    assert labels(world.new_events(resume(items))) == ["partial 0.0"]


def test_a_redelivered_hop_repeats_its_partials() -> None:
    world = World()
    world.publish(partial(0, 0), partial(0, 1))
    items = world.new_events(StreamCursor())
    world.publish(partial(0, 0, receive=2))
    assert labels(world.new_events(resume(items))) == ["partial 0.0"]


def test_one_call_is_limited_and_final_comes_last() -> None:
    world = World()
    world.publish(*(partial(0, number, data=b'"%s"' % (b"x" * 60_000)) for number in range(40)))
    world.report(event("t", "succeeded", 3, 90))
    cursor: StreamCursor | None = StreamCursor()
    received: list[str] = []
    rounds = 0
    while items := world.new_events(cursor, limit=10 if rounds == 3 else 500):
        assert len(items) <= 25
        received += labels(items)
        cursor = resume(items)
        rounds += 1
    assert received == [*(f"partial 0.{number}" for number in range(40)), "final succeeded"]
    assert rounds > 2


@pytest.mark.rule("7.FLY.clients")
@settings(max_examples=60)
@given(st.randoms(use_true_random=False))
def test_partials_that_are_written_in_order_are_all_shown(chance: random.Random) -> None:
    """Partials are written hop by hop, in batches of any size."""
    world = World()
    cursor: StreamCursor | None = StreamCursor()
    received: list[tuple[int, int]] = []
    count = {position: chance.randint(0, 8) for position in range(6)}
    for position, messages in count.items():
        done = 0
        while done < messages:
            size = chance.randint(1, messages - done)
            world.publish(*(partial(position, number) for number in range(done, done + size)))
            done += size
            items = world.new_events(cursor)
            items = items[: chance.randint(0, len(items))]
            received += [
                (each.data.position, each.data.sequence) for each in items if isinstance(each.data, StreamPartial)
            ]
            cursor = resume(items) if items else cursor
    rest = world.new_events(cursor)
    received += [(each.data.position, each.data.sequence) for each in rest if isinstance(each.data, StreamPartial)]
    assert received == [(position, number) for position, messages in count.items() for number in range(messages)]
