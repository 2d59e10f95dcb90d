"""Overlap, debounce and batch: a table of cases, with a process that dies before or after each write."""

from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from asya.protocol.triggers import Trigger, TriggerBatch
from asya.testing.planned_faults import Death
from tests.doubles.lane_world import LaneWorld

SKIP, QUEUE, CANCEL = (
    Trigger(route=("infer",), overlap=mode, by="/lane") for mode in ("skip", "queue", "cancel-previous")
)
DEBOUNCE = Trigger(route=("infer",), debounce=30.0, by="/lane")
BATCH = Trigger(route=("infer",), batch=TriggerBatch(size=3, window=60.0), by="/lane")

Story = Callable[[LaneWorld], None]


def one_after_the_other(world: LaneWorld) -> None:
    """Two occurrences; the first task ends between them."""
    first = world.occur(1, times=2)
    world.run(60)
    world.end(first.task_id)
    world.run(60)
    world.occur(2)
    world.run(180)


def while_one_runs(world: LaneWorld) -> None:
    """Three occurrences, two while the first task runs; then each task ends."""
    world.occur(1)
    world.run(60)
    world.occur(3, times=2)
    world.occur(2)
    world.run(120)
    world.end_all(120)
    for number in (1, 2, 3):
        world.occur(number)  # a copy that comes late
    world.run(120)


def without_notices(world: LaneWorld) -> None:
    """The same, and no notice of an end arrives: the sweep finds them."""
    world.loses_notices = True
    while_one_runs(world)


def while_off(world: LaneWorld) -> None:
    """A deployment turns the trigger off while two starts wait, and later on again."""
    world.occur(1)
    world.run(60)
    world.occur(2)
    world.run(60)
    trigger, world.trigger = world.trigger, replace(world.trigger, enabled=False)
    world.end(next(iter(world.started)))
    world.run(120)
    assert world.numbers() == [1]
    world.trigger = trigger
    world.run(120)
    world.end_all(120)


def deaths(story: Story, trigger: Trigger) -> Iterator[LaneWorld]:
    """The worlds after a story: without a death, and with one before or after each write of the functions."""
    world = LaneWorld(trigger)
    story(world)
    yield world
    for at in range(1, len(world.death.effects) + 1):
        for after in (False, True):
            dying = LaneWorld(trigger, death=Death(at, is_after=after))
            story(dying)
            yield dying


@pytest.mark.rule("16.overlap", "16.overlap.skip", "16.overlap.queue", "16.overlap.cancel-previous")
@pytest.mark.rule("16.lane.once", "16.lane.start", "16.lane.repair")
@pytest.mark.parametrize(("trigger", "expected"), [(SKIP, [1]), (QUEUE, [1, 2, 3]), (CANCEL, [1, 3, 2])])
@pytest.mark.slow
def test_16_each_occurrence_starts_as_the_overlap_says_wherever_a_process_dies(
    trigger: Trigger, expected: list[int]
) -> None:
    """No two tasks of a lane run at the same time, nothing is lost, and nothing starts twice."""
    for number, world in enumerate(deaths(while_one_runs, trigger)):
        assert (world.numbers() if not number else sorted(world.numbers())) == (
            sorted(expected) if number else expected
        )
        assert (world.overlaps, world.dead, world.waiting) == ([], [], [])


@pytest.mark.rule("16.overlap", "16.ends.lost", "16.lane.repair", "16.lane.off")
@pytest.mark.parametrize(
    ("trigger", "story", "expected"),
    [
        (SKIP, one_after_the_other, [1, 2]),
        (QUEUE, one_after_the_other, [1, 2]),
        (CANCEL, one_after_the_other, [1, 2]),
        (SKIP, without_notices, [1]),
        (QUEUE, without_notices, [1, 2, 3]),
        (QUEUE, while_off, [1, 2]),
    ],
)
def test_16_the_order_of_events_decides(trigger: Trigger, story: Story, expected: list[int]) -> None:
    """The sweep repairs what no notice tells, and what was decided before a deployment."""
    world = LaneWorld(trigger)
    story(world)
    assert world.numbers() == expected
    assert (world.overlaps, world.dead, world.waiting) == ([], [], [])


def gathered(world: LaneWorld) -> list[list[int]]:
    """The numbers of the occurrences in each task with a batch."""
    return [[item["n"] for item in payload["items"]] for payload in world.started.values()]


def a_burst(world: LaneWorld) -> None:
    """Four occurrences within seconds, two of them twice and in the wrong order; late copies; then one more."""
    for number in (1, 2, 4, 3):
        world.occur(number, times=1 + number % 2)
        world.run(5, sweeps=False)
    world.run(180)
    for number in (1, 2, 3, 4):
        world.occur(number)
    world.run(180)
    world.occur(5)
    world.run(180)


@pytest.mark.rule("16.debounce", "16.window", "16.window.close", "16.lane.once")
@pytest.mark.slow
def test_16_debounce_starts_one_task_for_a_burst_wherever_a_process_dies() -> None:
    """It has the payload of the occurrence that was sent last. Copies, also late ones, start nothing."""
    for world in deaths(a_burst, DEBOUNCE):
        assert world.numbers() == [4, 5]
        assert (world.dead, world.waiting) == ([], [])


@pytest.mark.rule("16.batch", "16.window", "16.window.close", "16.lane.once")
@pytest.mark.slow
def test_16_a_batch_has_each_occurrence_once_wherever_a_process_dies() -> None:
    """The third one fills the batch. A death may move an occurrence to the next one."""
    for world in deaths(a_burst, BATCH):
        assert sorted(number for items in gathered(world) for number in items) == [1, 2, 3, 4, 5]
        assert all(len(items) <= 3 and items == sorted(items) for items in gathered(world))
        assert (world.dead, world.waiting) == ([], [])
