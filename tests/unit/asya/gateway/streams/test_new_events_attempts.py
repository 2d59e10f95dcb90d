"""The hops of a task that has ended before all its reports have arrived."""

from asya.gateway.streams.new_events import has_unfinished_hops
from asya.protocol.envelope import Route
from tests.doubles.tasks import event, hop
from tests.unit.asya.gateway.streams.task_reports import World


def test_a_task_may_succeed_before_its_hops_are_reported() -> None:
    world = World()
    over = Route(("a", "b", "c"), "", ())
    world.report(*hop("t", 0), *hop("t", 2), event("t", "succeeded", 3, 90, route=over))
    assert has_unfinished_hops(world.task, world.hops.values())
    world.report(*hop("t", 1)[:2])
    assert has_unfinished_hops(world.task, world.hops.values())
    world.report(*hop("t", 1)[2:])
    assert not has_unfinished_hops(world.task, world.hops.values())
    redriven = World()
    redriven.report(*hop("t", 2), event("t", "succeeded", 3, 90, route=over))
    assert not has_unfinished_hops(redriven.task, redriven.hops.values())
    failed = World()
    failed.report(*hop("t", 0)[:2], event("t", "failed", 0, 90))
    assert not has_unfinished_hops(failed.task, failed.hops.values())
    # A handler without a frame leaves the route unchanged.
    empty = World()
    empty.report(*hop("t", 0)[:2], event("t", "succeeded", 0, 90))
    assert has_unfinished_hops(empty.task, empty.hops.values())
    empty.report(*hop("t", 0)[2:])
    assert not has_unfinished_hops(empty.task, empty.hops.values())
