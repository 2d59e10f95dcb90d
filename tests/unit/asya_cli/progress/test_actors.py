"""The progress of a task, computed from successive views of it."""

from io import StringIO

import pytest
from rich.console import Console

from asya.protocol.envelope import Route, progress_percent
from asya.tasks.view import TaskView
from asya_cli.progress.actors import ActorLine, Progress
from asya_cli.progress.display import Display, changed_lines, duration

ACTORS = ("a", "b", "c")


def look(position: int, stage: str, second: float, status: str = "running") -> TaskView:
    route = Route(ACTORS[:position], ACTORS[position] if position < 3 else "", ACTORS[position + 1 :])
    percent = 100 if status == "succeeded" else progress_percent(route, stage)
    return TaskView(
        id="one",
        status=status,  # type: ignore[arg-type]
        progress_percent=percent,
        actor=route.curr or None,
        route=route,
        created_at="2026-01-01T00:00:00.000000Z",
        updated_at=f"2026-01-01T00:00:{second:09.6f}Z",
        generation=0,
    )


def stages(progress: Progress) -> list[str]:
    return [line.stage for line in progress.lines]


def test_an_actor_waits_until_a_view_shows_it() -> None:
    assert stages(Progress.of(ACTORS)) == ["waiting", "waiting", "waiting"]


@pytest.mark.parametrize(
    ("stage", "shown"), [("received", "received"), ("processing", "processing"), ("completed", "done")]
)
def test_the_percentage_tells_the_stage_of_the_current_actor(stage: str, shown: str) -> None:
    assert stages(Progress.of(ACTORS).after(look(1, stage, 1))) == ["done", shown, "waiting"]


def test_the_duration_of_an_actor_starts_at_the_first_view_of_it() -> None:
    progress = Progress.of(ACTORS)
    for view in (look(0, "received", 1), look(0, "processing", 2), look(0, "completed", 4.5), look(1, "received", 5)):
        progress = progress.after(view)
    assert progress.lines[0].seconds == pytest.approx(3.5)
    assert progress.lines[1].seconds is None


def test_an_actor_that_no_view_showed_has_no_duration() -> None:
    progress = Progress.of(ACTORS).after(look(0, "completed", 1)).after(look(2, "received", 3))
    assert [line.seconds for line in progress.lines] == [None, None, None]
    assert stages(progress) == ["done", "done", "received"]


def test_the_end_of_the_task_ends_its_actors() -> None:
    progress = Progress.of(ACTORS).after(look(2, "processing", 1)).after(look(3, "completed", 4, "succeeded"))
    assert stages(progress) == ["done", "done", "done"]
    assert (progress.percent, progress.status, progress.lines[2].seconds) == (100, "succeeded", 3.0)


def test_a_failure_is_shown_at_its_actor() -> None:
    assert stages(Progress.of(ACTORS).after(look(1, "processing", 1, "failed"))) == ["done", "failed", "waiting"]


def test_stages_never_go_back() -> None:
    progress = Progress.of(ACTORS).after(look(1, "processing", 2)).after(look(1, "received", 1))
    assert stages(progress) == ["done", "processing", "waiting"]
    assert progress.percent == look(1, "processing", 2).progress_percent


def test_a_rewritten_route_replaces_the_old_one() -> None:
    progress = Progress.of(("a", "other")).after(look(1, "received", 1))
    assert [line.actor for line in progress.lines] == ["a", "b", "c"]


def test_outside_a_terminal_each_change_is_a_line() -> None:
    output = StringIO()
    with Display(Console(file=output, width=100), Progress.of(ACTORS)) as display:
        for view in (look(0, "completed", 1), look(0, "completed", 1), look(1, "processing", 2)):
            display.show(display.progress.after(view))
    lines = [line.split()[2:] for line in output.getvalue().splitlines()]
    assert lines == [["a", "done"], ["b", "processing"]]


def test_on_a_terminal_all_actors_and_the_total_are_drawn() -> None:
    output = StringIO()
    console = Console(file=output, width=100, force_terminal=True, color_system=None)
    with Display(console, Progress.of(ACTORS), {"b": "Spark"}) as display:
        display.show(display.progress.after(look(1, "processing", 2)))
    drawn = output.getvalue()
    assert all(word in drawn for word in ("a", "done", "b", "Spark", "processing", "c", "waiting", "48 %"))


@pytest.mark.parametrize("before", ["received", "completed"])
def test_a_pause_lasts_until_the_task_resumes(before: str) -> None:
    progress = Progress.of(ACTORS).after(look(0, before, 1)).after(look(0, "completed", 1, "paused"))
    assert stages(progress) == ["paused", "waiting", "waiting"]
    progress = progress.after(look(1, "received", 31))
    assert (stages(progress), progress.lines[0].seconds) == (["done", "received", "waiting"], 30.0)


def test_the_display_does_not_overwrite_output_during_a_suspension() -> None:
    output = StringIO()
    console = Console(file=output, width=100, force_terminal=True, color_system=None)
    with Display(console, Progress.of(ACTORS)) as display:
        display.show(display.progress.after(look(0, "completed", 2, "paused")))
        with display.suspended():
            before = output.getvalue()
            console.print("Shall it go on?")
        display.show(display.progress.after(look(1, "processing", 3)))
    earlier, _, later = output.getvalue().partition("Shall it go on?")
    up = "\x1b[1A"
    assert before.endswith("\x1b[2K")  # the display was erased
    assert earlier.count(up) >= len(ACTORS)
    first_drawn = later[: later.index("processing")]
    assert up not in first_drawn


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (ActorLine("a"), ""),
        (ActorLine("a", "paused", 100.0), "7 s"),
        (ActorLine("a", "processing", 100.0), "7 s"),
        (ActorLine("a", "done", 100.0, 3.25), "3.2 s"),
        (ActorLine("a", "done"), "< 1 s"),
        (ActorLine("a", "failed"), ""),
    ],
)
def test_durations(line: ActorLine, shown: str) -> None:
    assert duration(line, now=107.4) == shown


def test_only_changed_lines_are_printed_again() -> None:
    before = Progress.of(ACTORS).after(look(0, "completed", 1))
    assert changed_lines(before, before) == []
    assert [line.actor for line in changed_lines(before, before.after(look(1, "received", 2)))] == ["b"]
