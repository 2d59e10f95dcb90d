"""The progress of the slices of a fan-out: one line for each actor."""

from typing import Any, cast

from asya.protocol.envelope import Route, progress_percent
from asya.protocol.ids import child_id
from asya.tasks.view import TaskView
from asya_cli.progress.actors import ActorLine, Progress
from asya_cli.progress.display import SlicePoller, merge_lines

SPLIT = 1  # the actor at this position fans out
ROUTE = ("first", "split", "x-fan-in", "last")


class Mesh:
    """A client with the tasks of slices. It records the slices that were requested."""

    def __init__(self, **stages: tuple[str, float]) -> None:
        self.stages = stages
        self.requested: list[int] = []

    def task(self, envelope_id: str) -> TaskView | None:
        index = next(n for n in range(1, 60) if child_id("origin", 0, SPLIT, n) == envelope_id)
        self.requested.append(index)
        if f"s{index}" not in self.stages:
            return None
        stage, second = self.stages[f"s{index}"]
        done = stage == "succeeded"
        route = Route(("first", "split", *(("work",) if done else ())), "x-fan-in" if done else "work", ())
        return view(envelope_id, route, 100 if done else progress_percent(route, cast("Any", stage)), stage, second)


def view(envelope_id: str, route: Route, percent: int, stage: str, second: float) -> TaskView:
    return TaskView(
        id=envelope_id,
        status="succeeded" if stage == "succeeded" else "running",
        progress_percent=percent,
        actor=route.curr,
        route=route,
        created_at="2026-01-01T00:00:00.000000Z",
        updated_at=f"2026-01-01T00:00:{second:09.6f}Z",
        generation=0,
    )


def origin(position: int) -> TaskView:
    return view("origin", Route(ROUTE[:position], ROUTE[position], ROUTE[position + 1 :]), 50, "processing", 1.0)


def watch(mesh: Mesh) -> SlicePoller:
    return SlicePoller(cast("Any", mesh), "origin", SPLIT, ("work",))


def test_no_slice_is_polled_before_the_fan_out() -> None:
    mesh = Mesh(s1=("processing", 2.0))
    assert [line.stage for line in watch(mesh).poll(origin(0))] == ["waiting"]
    assert mesh.requested == []


def test_slices_are_polled_in_order_until_they_end() -> None:
    mesh = Mesh(s1=("processing", 2.0), s2=("received", 2.5))
    poller = watch(mesh)
    assert [line.stage for line in poller.poll(origin(2))] == ["processing"]
    assert mesh.requested == [1, 2, 3]
    mesh.stages = {"s1": ("succeeded", 5.0), "s2": ("succeeded", 9.0)}
    [line] = poller.poll(origin(2))
    assert (line.actor, line.stage, line.seconds) == ("work", "done", 7.0)
    mesh.requested.clear()
    list(poller.poll(origin(2)))
    assert mesh.requested == [3]


def test_merged_lines_begin_with_the_first_slice_and_end_with_the_last() -> None:
    first, second = ActorLine("work", "done", 10.0, 2.0), ActorLine("work", "done", 11.0, 4.0)
    assert merge_lines("work", [first, second]) == ActorLine("work", "done", 10.0, 5.0)
    assert merge_lines("work", [first, ActorLine("work", "waiting")]).stage == "processing"
    assert merge_lines("work", [first, ActorLine("work", "failed", 11.0)]).stage == "failed"
    assert merge_lines("work", []) == ActorLine("work")


def test_the_lines_of_slices_precede_the_fan_in_actor() -> None:
    progress = Progress.of(ROUTE, ("work",), 2)
    assert [line.actor for line in progress.all_lines] == ["first", "split", "work", "x-fan-in", "last"]
    assert progress.after_slices([ActorLine("work", "processing", 1.0)]).all_lines[2].stage == "processing"
    assert progress.after(origin(2)).slices == progress.slices
