"""Partials that are stored out of order (`protocol §13.stream.gap`)."""

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from asya.gateway.streams.new_events import GAP_HOLD, StreamEvent
from asya.gateway.streams.stream_cursor import StreamCursor, decode
from asya.protocol.events import PartialEvent
from asya.tasks.stream_events import StreamPartial
from tests.doubles.tasks import at, event, hop
from tests.unit.asya.gateway.streams.task_reports import World, labels, partial, resume
from tests.unit.asya.gateway.streams.test_event_poller import PolledTask
from tests.unit.asya.gateway.streams.test_event_poller import partial as polled_partial

KEPT = GAP_HOLD - timedelta(seconds=1)
"""The shortest hold: times of storage are whole seconds."""
BOUND = 6.0
"""The longest hold of a poll, in seconds."""

Run = tuple[int, int, int]


def run_of(data: StreamPartial) -> Run:
    return (data.position, data.attempt, data.receive)


def partials_of(events: list[StreamEvent]) -> list[StreamPartial]:
    return [each.data for each in events if isinstance(each.data, StreamPartial)]


def at_second(seconds: float) -> datetime:
    return at(0) + timedelta(seconds=seconds)


@pytest.mark.rule("13.stream.gap")
def test_partials_wait_behind_a_gap_until_it_is_filled() -> None:
    world = World()
    world.publish(partial(0, 0), now=at_second(10))
    world.publish(partial(0, 2), partial(0, 3), now=at_second(10))
    items = world.new_events(StreamCursor(), now=at_second(10))
    assert labels(items) == ["partial 0.0", "pending"]
    assert world.new_events(resume(items), now=at_second(13)) == ()
    world.publish(partial(0, 1), now=at_second(13))
    assert labels(world.new_events(resume(items), now=at_second(13))) == ["partial 0.1", "partial 0.2", "partial 0.3"]


@pytest.mark.rule("13.stream.gap")
def test_a_gap_that_stays_is_passed_and_told() -> None:
    world = World()
    world.publish(partial(0, 0), partial(0, 3), now=at_second(10))
    world.publish(partial(0, 5), now=at_second(12))
    items = world.new_events(StreamCursor(), now=at_second(10))
    assert world.new_events(resume(items), now=at_second(13)) == ()
    passed = world.new_events(resume(items), now=at_second(14))
    assert [(each.sequence, each.missed) for each in partials_of([*passed])] == [(3, 2)]
    passed = world.new_events(resume(passed), now=at_second(16))
    assert [(each.sequence, each.missed) for each in partials_of([*passed])] == [(5, 1)]
    shown_at_once = partials_of([*world.new_events(StreamCursor(), now=at_second(20))])
    assert [(each.sequence, each.missed) for each in shown_at_once] == [(0, UNSET), (3, 2), (5, 1)]


@pytest.mark.rule("13.stream.gap")
def test_the_end_waits_for_held_partials_and_no_longer() -> None:
    world = World()
    world.report(event("t", "succeeded", 3, 10))
    world.publish(partial(0, 1), now=at_second(10))
    assert labels(world.new_events(StreamCursor(), now=at_second(11))) == []
    world.publish(partial(0, 7), now=at_second(13))  # a handler that goes on after the end does not put it off
    assert labels(world.new_events(StreamCursor(), now=at_second(14))) == [
        "partial 0.1",
        "partial 0.7",
        "final succeeded",
    ]


@pytest.mark.rule("13.stream.gap")
def test_a_gap_holds_a_megabyte_at_most() -> None:
    world = World()
    world.publish(*(partial(0, number, data=b'"%s"' % (b"x" * 60_000)) for number in range(1, 20)), now=at_second(10))
    passed = partials_of([*world.new_events(StreamCursor(), now=at_second(10))])
    assert (passed[0].sequence, passed[0].missed) == (1, 1)


@pytest.mark.rule("13.stream.gap")
def test_an_attempt_shows_its_late_partials_behind_those_of_the_next() -> None:
    world = World()
    world.publish(partial(0, 0), partial(0, 0, attempt=2), now=at_second(10))
    items = world.new_events(StreamCursor(), now=at_second(10))
    world.publish(partial(0, 1), now=at_second(11))
    late = partials_of([*world.new_events(resume(items), now=at_second(11))])
    assert [(each.attempt, each.sequence) for each in late] == [(1, 1)]


@dataclass
class Followed:
    """A client that follows a task across connections, each of which may break anywhere."""

    world: World
    chance: random.Random
    cursor: StreamCursor | None = field(default_factory=StreamCursor)
    received: list[StreamEvent] = field(default_factory=list)

    def poll(self, now: datetime, *, breaks: bool = True) -> None:
        items = self.world.new_events(self.cursor, limit=self.chance.choice([1, 3, 500]), now=now)
        items = items[: self.chance.randint(0, len(items))] if breaks else items
        self.received += items
        self.cursor = decode(items[-1].id) if items else self.cursor

    def poll_all(self, now: datetime) -> None:
        before = -1
        while before != len(self.received):
            before = len(self.received)
            self.poll(now, breaks=False)

    def shown(self) -> dict[Run, list[StreamPartial]]:
        runs: dict[Run, list[StreamPartial]] = {}
        for each in partials_of(self.received):
            runs.setdefault(run_of(each), []).append(each)
        return runs


def batches_of(chance: random.Random) -> list[list[PartialEvent]]:
    """Return the partials of two hops, their attempts and receives, as the batches that are stored; some come twice."""
    batches: list[list[PartialEvent]] = []
    for position in range(2):
        for attempt in range(1, chance.randint(1, 2) + 1):
            for receive in range(1, chance.randint(1, 2) + 1):
                count = chance.randint(1, 9)
                cuts = sorted({0, count, *(chance.randint(0, count) for _ in range(3))})
                parts = [
                    [partial(position, number, attempt=attempt, receive=receive) for number in range(first, end)]
                    for first, end in pairwise(cuts)
                ]
                together = [each for part in chance.sample(parts, chance.randint(0, len(parts))) for each in part]
                batches += [*parts, *([together] if together else [])]
    return batches


def stored(batches: list[list[PartialEvent]]) -> dict[Run, set[int]]:
    runs: dict[Run, set[int]] = {}
    for batch in batches:
        for each in batch:
            runs.setdefault((each.position, each.attempt, each.receive), set()).add(each.sequence)
    return runs


@pytest.mark.rule("13.stream.gap")
@pytest.mark.rule("13.stream.id")
@settings(max_examples=150)
@given(st.randoms(use_true_random=False))
def test_partials_within_the_hold_are_all_shown_once_and_in_order(chance: random.Random) -> None:
    world = World()
    client = Followed(world, chance)
    batches = batches_of(chance)
    world.report(*hop("t", 0))
    seconds = KEPT.total_seconds()
    moments = sorted((chance.uniform(0, seconds), number) for number in range(len(batches)))
    for moment, number in moments:
        world.publish(*batches[number], now=at_second(100 + moment))
        if chance.random() < 0.6:
            client.poll(at_second(100 + moment))
    world.report(event("t", "succeeded", 3, 104))
    client.poll_all(at_second(100 + seconds))
    assert {run: [each.sequence for each in shown] for run, shown in client.shown().items()} == {
        run: sorted(numbers) for run, numbers in stored(batches).items()
    }
    assert all(each.missed is UNSET for each in partials_of(client.received))
    assert [each.type for each in client.received].count("final") == 1
    assert client.received[-1].type == "final"


@pytest.mark.rule("13.stream.gap")
@settings(max_examples=150)
@given(st.randoms(use_true_random=False))
def test_what_comes_later_or_never_is_counted_and_nothing_is_held_longer(chance: random.Random) -> None:
    world = World()
    client = Followed(world, chance)
    batches = [each for each in batches_of(chance) if chance.random() < 0.8]
    world.report(*hop("t", 0))
    ended = chance.uniform(0, 25)
    moments = sorted((chance.uniform(0, 25), number) for number in range(len(batches)))
    is_reported = False
    kept: dict[Run, list[tuple[float, int]]] = {}
    for moment, number in moments:
        if not is_reported and ended <= moment:
            world.report(event("t", "succeeded", 3, 100 + int(ended)))
            is_reported = True
        world.publish(*batches[number], now=at_second(100 + moment))
        for run, numbers in stored([batches[number]]).items():
            kept.setdefault(run, []).extend((moment, each) for each in numbers)
        if chance.random() < 0.6:
            client.poll(at_second(100 + moment))
        if chance.random() < 0.4:
            client.poll_all(at_second(100 + moment))
            is_over = any(each.type == "final" for each in client.received)
            last = {run: shown[-1].sequence for run, shown in client.shown().items()}
            for run, of_run in kept.items():
                due = [each for since, each in of_run if since + GAP_HOLD.total_seconds() <= moment]
                again = {each for since, each in of_run if since + GAP_HOLD.total_seconds() > moment}
                assert is_over or not set(due) - again or last[run] >= max(set(due) - again)
            assert is_over or not is_reported or moment < int(ended) + GAP_HOLD.total_seconds()
    if not is_reported:
        world.report(event("t", "succeeded", 3, 100 + int(ended)))
    client.poll_all(at_second(200))
    assert client.received[-1].type == "final"
    for shown in client.shown().values():
        sequences = [each.sequence for each in shown]
        assert sequences == sorted(set(sequences))
        told = sum(each.missed for each in shown if each.missed is not UNSET)
        assert told + len(sequences) == sequences[-1] + 1


@settings(max_examples=60)
@given(st.randoms(use_true_random=False))
@pytest.mark.rule("13.stream.gap")
@pytest.mark.rule("7.FLY.clients")
def test_a_poller_holds_no_partial_and_no_end_for_longer(chance: random.Random) -> None:
    """Most polls read the recent partials alone."""
    polled = PolledTask()
    polled.report(*hop("t", 0)[:2])
    count = 12
    stored_at = {number: chance.uniform(1, 8) for number in range(count) if chance.random() < 0.8}
    for number, when in stored_at.items():
        position, sequence = divmod(number, count // 2)
        polled.publish_later(when, polled_partial(sequence, position))
    polled.report_later(9.0, *[*hop("t", 0), *hop("t", 1)], event("t", "failed", 1, 9, reason="Timeout"))
    cursor: StreamCursor | None = StreamCursor()
    seen: dict[int, float] = {}
    missed = 0
    shown: list[StreamEvent] = []
    while not shown or shown[-1].type != "final":
        events = polled.poll(cursor, chance.choice([2.0, 15.0]))
        for data in partials_of([*events]):
            number = data.position * (count // 2) + data.sequence
            assert number not in seen
            seen[number] = polled.clock.seconds
            missed += data.missed if data.missed is not UNSET else 0
        shown += events
        cursor = decode(events[-1].id) if events else cursor
        polled.clock.sleep(0.3)
    # A partial is stored at the next tick of the clock, and a client is away for 0.3 s.
    assert all(seen[number] - stored_at[number] < BOUND + 0.7 for number in seen)
    last = [max((each % 6 for each in seen if each // 6 == position), default=-1) for position in (0, 1)]
    assert missed == sum(each + 1 for each in last) - len(seen)
    assert {number for number in stored_at if number % 6 > last[number // 6]} == set()
    assert polled.clock.seconds < 9 + BOUND + 1
