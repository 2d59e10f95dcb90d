"""Runs a command for many tasks: shows which, asks at a terminal, and counts what happened."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track

from asya_cli.errors import CommandError, ExitCode
from asya_cli.output.text import counted, echo, one_line
from asya_cli.tasks.selection import failure_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asya.tasks.view import TaskView

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show which tasks are selected.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before many tasks are changed.")]


def for_each(
    tasks: Sequence[TaskView], verb: str, act: Callable[[TaskView], str | None], *, dry_run: bool, yes: bool
) -> None:
    """Act on tasks, one after the other, and print what each became on standard output.

    Args:
        tasks: The tasks.
        verb: What happens to them, such as `replay`.
        act: Acts on one task, and returns what to print; None for nothing.
        dry_run: Only show the tasks.
        yes: Do not ask at a terminal.

    Raises:
        CommandError: The user said no, or some tasks could not be changed; the others were.
    """
    if not tasks:
        echo("no task is selected", err=True)
        return
    if dry_run:
        for task in tasks:
            echo(f"{one_line(task.id)}  {one_line(failure_text(task) or task.status)}")
        echo(f"{counted(len(tasks), 'task')} selected; nothing was changed", err=True)
        return
    if not yes and sys.stdin.isatty() and not typer.confirm(f"{verb} {counted(len(tasks), 'task')}?", err=True):
        raise CommandError("nothing was changed")
    refused = 0
    is_shown = sys.stderr.isatty() and len(tasks) > 1
    from asya_cli.output.console import Console

    for task in track(tasks, verb, console=Console(stderr=True), disable=not is_shown, transient=True):
        try:
            outcome = act(task)
        except CommandError as error:
            if error.code is ExitCode.UNREACHABLE:
                raise
            refused += 1
            echo(" ".join(filter(None, (f"{one_line(task.id)}: {error.problem}", error.advice))), err=True)
        else:
            if outcome is not None:
                echo(outcome)
    if refused:
        raise CommandError(f"{refused} of {counted(len(tasks), 'task')} could not be changed; the reasons are above")
