"""Shows the progress of a task: a line per actor, and a bar for the task.

The slices of a fan-out have one line for each actor, merged over all slices.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING

import typer
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from asya.client.watch import watch
from asya.protocol import ids, states
from asya_cli import clock
from asya_cli.errors import INTERRUPTED
from asya_cli.output.console import Console
from asya_cli.output.text import echo, one_line
from asya_cli.progress.actors import ActorLine, Progress, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from asya.client.mesh_client import MeshClient
    from asya.tasks.view import TaskView

MAX_SLICES = 50
"""The number of slices to poll. In a larger set the first ones represent the others."""


@dataclass
class SlicePoller:
    """Polls the slices of one fan-out.

    Attributes:
        origin: The id of the envelope that was fanned out.
        position: The position of the actor that fans out.
        actors: The actors between fan-out and fan-in.
        slices: The progress of each slice that has a record, in order.
    """

    mesh: MeshClient
    origin: str
    position: int
    actors: tuple[str, ...]
    slices: list[Progress] = field(default_factory=list)

    def poll(self, task: TaskView) -> Iterator[ActorLine]:
        """Yield the line of each actor.

        Raises:
            CommandError: The gateway does not answer, or answers with an error.
        """
        if self.actors and task.route is not None and len(task.route.prev) >= self.position:
            self._poll_slices(task.generation)
        for position, actor in enumerate(self.actors, start=self.position + 1):
            yield merge_lines(actor, [line for each in self.slices for line in each.lines[position : position + 1]])

    def _poll_slices(self, generation: int) -> None:
        """Read the task of each slice that has not ended, until one has no record yet."""
        for index in range(MAX_SLICES):
            progress = self.slices[index] if index < len(self.slices) else None
            if progress is not None and progress.status in states.TERMINAL:
                continue
            # Frame 0 is the origin itself.
            task = self.mesh.task(ids.child_id(self.origin, generation, self.position, index + 1))
            if task is None:
                return
            self.slices[index : index + 1] = [(progress or Progress(())).after(task)]


def merge_lines(actor: str, lines: Sequence[ActorLine]) -> ActorLine:
    """Merge the lines of several slices at one actor: it begins with the first slice and is done with the last."""
    stages = {line.stage for line in lines}
    began = [line.began_at for line in lines if line.began_at is not None]
    ends = [line.began_at + line.seconds for line in lines if line.began_at is not None and line.seconds is not None]
    stage = next(
        (stage for stage in (Stage.FAILED, Stage.PROCESSING, Stage.RECEIVED) if stage in stages), Stage.WAITING
    )
    if stages == {Stage.DONE}:
        stage = Stage.DONE
    elif Stage.DONE in stages and stage != Stage.FAILED:
        stage = Stage.PROCESSING
    return ActorLine(
        actor,
        stage,
        min(began) if began else None,
        max(ends) - min(began) if stage == Stage.DONE and ends else None,
    )


BAR_WIDTH = 40
UNKNOWN_SECONDS = 60.0
"""How long `follow` waits for the record of an envelope that was just sent."""

_SILENT_SECONDS = 3.0
"""Without a record for so long, `follow` says what it waits for."""

MARKS = {Stage.WAITING: "[dim]·[/]", Stage.PAUSED: "[yellow]‖[/]", Stage.DONE: "[green]✔[/]", Stage.FAILED: "[red]✘[/]"}
STYLES = {
    Stage.WAITING: "dim",
    Stage.RECEIVED: "yellow",
    Stage.PROCESSING: "cyan",
    Stage.PAUSED: "yellow",
    Stage.DONE: "green",
    Stage.FAILED: "red",
}


class Display:
    """Shows a `Progress`: redrawn in place on a terminal, elsewhere a line per change.

    Args:
        remarks: A remark for each actor, such as its platform.
    """

    def __init__(self, console: Console, progress: Progress, remarks: Mapping[str, str] | None = None) -> None:
        self._console = console
        self._progress = progress
        self._remarks = remarks or {}
        self._spinner = Spinner("dots", style="cyan")
        self._began = clock.monotonic()
        self._live = self._new_live() if console.is_terminal else None

    @property
    def progress(self) -> Progress:
        """The progress shown last."""
        return self._progress

    def __enter__(self) -> Display:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Erase the display, leave the terminal to the body, and draw the display again below its output."""
        if self._live:
            self._live.transient = True
            self._live.stop()
        yield
        if self._live:
            self._live = self._new_live()
            self._live.start()

    def _new_live(self) -> Live:
        """Create a live display at the cursor. A stopped one would overwrite later output."""
        return Live(self, console=self._console, refresh_per_second=10, transient=False)

    def show(self, progress: Progress) -> None:
        """Show another progress."""
        if self._live is None:
            for line in changed_lines(self._progress, progress):
                seconds = "" if line.seconds is None else f"{line.seconds:.1f} s"
                self._console.print(
                    f"  {progress.percent:3d} %  {one_line(line.actor):<24} {line.stage:<12}{seconds}",
                    highlight=False,
                    markup=False,
                )
        self._progress = progress

    def __rich__(self) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        table.add_column(width=1)
        table.add_column(no_wrap=True)
        table.add_column(style="dim", no_wrap=True)
        table.add_column(no_wrap=True, min_width=10)
        table.add_column(justify="right", no_wrap=True, min_width=8)
        now = clock.now().timestamp()
        for line in self._progress.all_lines:
            mark = (
                self._spinner
                if line.stage in (Stage.RECEIVED, Stage.PROCESSING)
                else Text.from_markup(MARKS[line.stage])
            )
            stage = Text(line.stage, STYLES[line.stage])
            seconds = duration(line, now)
            table.add_row(mark, Text(one_line(line.actor)), self._remarks.get(line.actor, ""), stage, seconds)
        total = Table.grid(padding=(0, 2))
        color = "red" if self._progress.status in states.ENDED_BADLY else "cyan"
        bar = ProgressBar(100, self._progress.percent, width=BAR_WIDTH, complete_style=color, finished_style="green")
        elapsed = f"{clock.monotonic() - self._began:.0f} s"
        total.add_row("", bar, f"{self._progress.percent:3d} %", Text(elapsed, "dim"))
        return Group(table, Text(), total)


def duration(line: ActorLine, now: float) -> str:
    """Return the duration of an actor: final, or so far; empty if unknown."""
    if line.seconds is not None:
        return f"{line.seconds:.1f} s"
    if line.stage == Stage.DONE:
        return "< 1 s"
    if line.began_at is None or line.stage == Stage.FAILED:
        return ""
    return f"{max(0.0, now - line.began_at):.0f} s"


def changed_lines(before: Progress, after: Progress) -> list[ActorLine]:
    """Return the lines whose stage differs from before."""
    previous = dict(enumerate(before.all_lines))
    return [
        line
        for position, line in enumerate(after.all_lines)
        if line.stage != Stage.WAITING and (position not in previous or previous[position].stage != line.stage)
    ]


@contextmanager
def leaving(envelope_id: str, options: str) -> Iterator[None]:
    """Let Ctrl-C end the block, and say that the task goes on.

    Args:
        envelope_id: The id of the task.
        options: The options that select the mesh, as typed.
    """
    try:
        yield
    except KeyboardInterrupt:
        echo(f"{envelope_id} goes on. `asya status {quote(envelope_id)} --follow{options}` shows it again.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def follow(
    mesh: MeshClient,
    envelope_id: str,
    console: Console,
    seconds: float,
    unknown_seconds: float | None = UNKNOWN_SECONDS,
) -> TaskView | None:
    """Show a task until it ends or waits for an answer, and return it; None if it has no record within `unknown_seconds`.

    Raises:
        CommandError: As in `watch`.
    """
    task: TaskView | None = None
    began, is_told = clock.monotonic(), False
    with Display(console, Progress(())) as display:
        for task in watch(mesh, envelope_id, seconds, unknown_seconds):
            if task is None and not is_told and clock.monotonic() > began + _SILENT_SECONDS:
                is_told = True
                console.print(
                    f"  no record of {one_line(envelope_id)}: no actor has received it yet, or you may not see it",
                    highlight=False,
                    markup=False,
                )
            if task is not None:
                display.show(display.progress.after(task))
                if task.is_paused:
                    break
    return task
