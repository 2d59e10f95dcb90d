"""No event is lost or repeated, in any order of reports and at any end of the connection (`protocol §13`)."""

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asya.gateway.streams.stream_cursor import StreamCursor, decode
from asya.protocol.events import PartialEvent, TaskEvent
from asya.tasks.stream_events import StreamPartial, StreamStatus
from tests.doubles.tasks import event, hop
from tests.unit.asya.gateway.streams.task_reports import World, labels, partial, percents, resume

if TYPE_CHECKING:
    from asya.gateway.streams.new_events import StreamEvent


def random_reports(chance: random.Random) -> list[list[TaskEvent] | list[PartialEvent]]:
    """Returns batches of reports: shuffled, some repeated, the end last."""
    events: list[TaskEvent] = []
    partials: list[list[PartialEvent]] = []
    for position in range(3):
        for attempt in range(1, chance.randint(1, 3) + 1):
            events += hop("t", position, attempt=attempt)[: chance.randint(1, 3)]
            for receive in range(1, chance.randint(1, 3)):
                count = chance.randint(1, 6)
                batch = [partial(position, number, attempt=attempt, receive=receive) for number in range(count)]
                cut = chance.randint(0, count)
                partials += [part for part in (batch[:cut], batch[max(0, cut - 1) :]) if part]
    events += chance.sample(events, len(events) // 3)
    chance.shuffle(events)
    batches: list[list[TaskEvent] | list[PartialEvent]] = [*partials]
    while events:
        size = chance.randint(1, 4)
        batches.append(events[:size])
        events = events[size:]
    chance.shuffle(batches)
    batches.append([event("t", chance.choice(["succeeded", "failed"]), 3, 200)])
    return batches


@pytest.mark.rule("13.stream.id")
@pytest.mark.slow
@settings(max_examples=120)
@given(st.randoms(use_true_random=False))
def test_no_event_is_lost_or_repeated_wherever_the_connection_ends(chance: random.Random) -> None:
    world = World()
    cursor: StreamCursor | None = StreamCursor()
    received: list[StreamEvent] = []
    for batch in random_reports(chance):
        if isinstance(batch[0], PartialEvent):
            world.publish(*[each for each in batch if isinstance(each, PartialEvent)])
        else:
            world.report(*[each for each in batch if isinstance(each, TaskEvent)])
        if chance.random() < 0.6:
            items = world.new_events(cursor, limit=chance.choice([1, 3, 500]))
            items = items[: chance.randint(0, len(items))]  # the connection ends in the middle
            received += items
            cursor = decode(items[-1].id) if items else cursor
    while items := world.new_events(cursor, limit=chance.choice([2, 500])):
        received += items
        cursor = resume(items)
    names = labels(received)
    assert names[-1].startswith("final")
    assert percents(received) == sorted(percents(received))
    assert all(isinstance(item.data, StreamStatus | StreamPartial) for item in received[:-1])
    steps = [
        (item.data.step, item.data.position, item.data.attempt)
        for item in received
        if isinstance(item.data, StreamStatus) and item.data.step
    ]
    assert sorted(steps) == sorted(expected_steps(world))
    for position, attempt in {step[1:] for step in steps}:
        of_attempt = [step[0] for step in steps if step[1:] == (position, attempt)]
        assert of_attempt == ["received", "processing", "completed"][: len(of_attempt)]
    partials = [item.data for item in received if isinstance(item.data, StreamPartial)]
    for run in {(each.position, each.attempt, each.receive) for each in partials}:
        order = [each.sequence for each in partials if (each.position, each.attempt, each.receive) == run]
        assert order == sorted(set(order))
    assert all(len(item.id) < 250 for item in received)


def expected_steps(world: World) -> set[tuple[str, int, int]]:
    """Returns the steps of every attempt, up to the furthest reported one."""
    order = {"received": 1, "start": 2, "done": 3}
    return {
        (step, part.position, part.attempt)
        for part in world.hops.values()
        for step in ("received", "processing", "completed")[: order[part.stage]]
    }
