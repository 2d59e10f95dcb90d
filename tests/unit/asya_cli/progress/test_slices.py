"""The slices of a fan-out as they are seen from outside: one line for all of them at each actor."""

from typing import Any, cast

from asya.protocol.ids import child_id
from asya.protocol.route import Route, progress_percent
from asya.tasks.view import TaskView
from asya_cli.progress.actors import ActorLine, Progress
from asya_cli.progress.slices import SliceWatch, together

SPLIT = 1  # the actor at this position fans out
ROUTE = ("first", "split", "x-fan-in", "last")


class Mesh:
    """Answers for the slices, and notes who was asked for."""

    def __init__(self, **stages: tuple[str, float]) -> None:
        self.stages = stages
        self.asked: list[int] = []

    def task(self, envelope_id: str) -> TaskView | None:
        index = next(n for n in range(1, 60) if child_id("origin", 0, SPLIT, n) == envelope_id)
        self.asked.append(index)
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


def watch(mesh: Mesh) -> SliceWatch:
    return SliceWatch(cast("Any", mesh), "origin", SPLIT, ("work",))


def test_nobody_is_asked_before_the_envelope_is_where_it_fans_out() -> None:
    mesh = Mesh(s1=("processing", 2.0))
    assert [line.stage for line in watch(mesh).look(origin(0))] == ["waiting"]
    assert mesh.asked == []


def test_slices_are_found_one_after_the_other_and_not_asked_for_once_they_ended() -> None:
    mesh = Mesh(s1=("processing", 2.0), s2=("received", 2.5))
    watched = watch(mesh)
    assert [line.stage for line in watched.look(origin(2))] == ["processing"]
    assert mesh.asked == [1, 2, 3]
    mesh.stages = {"s1": ("succeeded", 5.0), "s2": ("succeeded", 9.0)}
    [line] = watched.look(origin(2))
    assert (line.actor, line.stage, line.seconds) == ("work", "done", 7.0)
    mesh.asked.clear()
    list(watched.look(origin(2)))
    assert mesh.asked == [3]


def test_together_they_begin_with_the_first_and_are_done_with_the_last() -> None:
    first, second = ActorLine("work", "done", 10.0, 2.0), ActorLine("work", "done", 11.0, 4.0)
    assert together("work", [first, second]) == ActorLine("work", "done", 10.0, 5.0)
    assert together("work", [first, ActorLine("work", "waiting")]).stage == "processing"
    assert together("work", [first, ActorLine("work", "failed", 11.0)]).stage == "failed"
    assert together("work", []) == ActorLine("work")


def test_their_lines_stand_where_they_belong() -> None:
    progress = Progress.of(ROUTE, ("work",), 2)
    assert [line.actor for line in progress.shown] == ["first", "split", "work", "x-fan-in", "last"]
    assert progress.after_slices([ActorLine("work", "processing", 1.0)]).shown[2].stage == "processing"
    assert progress.after(origin(2)).slices == progress.slices
