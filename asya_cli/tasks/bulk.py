"""Runs a command for many tasks or dead letters: shows which, asks at a terminal, shows progress, and counts what happened."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from asya.client.errors import MeshError
from asya_cli.errors import INTERRUPTED, CommandError, ExitCode, exit_code_of
from asya_cli.output.results import write
from asya_cli.output.text import counted, echo, one_line, write_json_line
from asya_cli.tasks.selection import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from asya.tasks.view import TaskView

T = TypeVar("T")

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what is selected.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before many are changed.")]


@dataclass(frozen=True)
class Refusal:
    """A task that could not be changed, as `--json` prints it.

    Attributes:
        problem: Why not.
    """

    id: str
    problem: str


def for_each(
    tasks: Sequence[TaskView],
    verb: str,
    act: Callable[[TaskView], object | None],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool = False,
    describe: Callable[[TaskView], str] | None = None,
) -> None:
    """Act on tasks, one after the other, and print what each became on standard output.

    Args:
        tasks: The tasks.
        verb: What happens to them, such as `replay`.
        act: Acts on one task, and returns what to print, a dataclass; None for nothing.
        dry_run: Only show the tasks.
        yes: Do not ask at a terminal.
        as_json: Print JSON lines. Standard output has a line for each refused task too.
        describe: Returns what a dry run says of a task; by default its error or its status.

    Raises:
        CommandError: The user said no, or some tasks could not be changed; the others were.
    """
    if not tasks:
        echo("no task is selected", err=True)
        return
    if dry_run:
        for task in tasks:
            text = describe(task) if describe is not None else text_of(task) or task.status
            write(task, f"{one_line(task.id)}  {one_line(text)}", as_json=as_json)
        echo(f"{counted(len(tasks), 'task')} selected; nothing was changed", err=True)
        return
    if asks(yes=yes):
        confirm(f"{verb} {counted(len(tasks), 'task')}?")
    refused = done = 0
    at_work = ""

    def state() -> str:
        return f"{done} of {counted(len(tasks), 'task')} done{at_work}; the others are as they were"

    with leaving(state, MeshError, OSError):
        for task in tracked(tasks, verb, len(tasks)):
            at_work = f", and perhaps {one_line(task.id)}"
            try:
                outcome = act(task)
            except MeshError as error:
                if exit_code_of(error) is ExitCode.UNREACHABLE:
                    raise
                at_work = ""
                refused += 1
                reason = " ".join(filter(None, (error.problem, error.advice)))
                if as_json:
                    write_json_line(Refusal(task.id, reason))
                echo(f"{one_line(task.id)}: {reason}", err=True)
            else:
                at_work = ""
                done += 1
                if outcome is not None:
                    write(outcome, str(outcome), as_json=as_json)
    if refused:
        raise CommandError(f"{refused} of {counted(len(tasks), 'task')} could not be changed; the reasons are above")


def asks(*, yes: bool) -> bool:
    """Return whether the command asks before it changes many: at a terminal, without `--yes`."""
    return not yes and sys.stdin.isatty()


def confirm(question: str) -> None:
    """Ask at the terminal.

    Raises:
        CommandError: The user said no.
    """
    if not typer.confirm(question, err=True):
        raise CommandError("nothing was changed", "Answer y to go on, or give --yes.")


def tracked(items: Iterable[T], verb: str, total: int | None) -> Iterable[T]:
    """Yield the items, with a progress bar on standard error if that is a terminal.

    Where standard output is one too, the line of each item shows the progress: a bar would share its line.

    Args:
        items: The items.
        verb: What happens to them.
        total: Their number; None if it is not known.
    """
    from rich.progress import track

    from asya_cli.output.console import Console

    is_shown = sys.stderr.isatty() and not sys.stdout.isatty() and total != 1
    return track(items, verb, total=total, console=Console(stderr=True), disable=not is_shown, transient=True)


@contextmanager
def leaving(state: Callable[[], str], *errors: type[Exception]) -> Iterator[None]:
    """Let Ctrl-C end the block, and say what was done until then.

    Args:
        state: Returns what was done.
        errors: Errors that end the block alike; they go on. An `OSError` tells that nobody reads standard output any more.
    """
    try:
        yield
    except KeyboardInterrupt:
        echo(state(), err=True)
        raise typer.Exit(INTERRUPTED) from None
    except errors:
        echo(state(), err=True)
        raise
