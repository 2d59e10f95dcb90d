"""`asya dlq redrive` and `asya dlq reports`: send dead letters to their actors or queues again."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.dlq.options import (
    Actor,
    ErrorText,
    Id,
    Since,
    actors_of,
    dead_letters_of,
    filter_of,
    not_found,
    warn_of_hidden,
)
from asya_cli.options import JsonLines, MeshOptions, selects_mesh
from asya_cli.output.results import write
from asya_cli.output.text import counted, echo, one_line
from asya_cli.tasks.bulk import DryRun, Yes, asks, confirm, leaving, tracked

if TYPE_CHECKING:
    from collections.abc import Generator

    from asya_cli.dlq.letters import DeadLetters, Filter, QueuedLetter, RedriveResult


@dataclass(frozen=True)
class RedriveLine:
    """What became of a dead letter, as `--json` prints it.

    Attributes:
        generation: The generation in which the envelope was sent; None if the message was sent unchanged or not at all.
        problem: Why it stays in its queue; empty after a success.
    """

    actor: str
    id: str
    generation: int | None = None
    problem: str = ""

    def __str__(self) -> str:
        how = "unchanged" if self.generation is None else f"in generation {self.generation}"
        end = f"refused: {self.problem}" if self.problem else f"sent again {how}"
        return f"{self.actor}  {one_line(self.id)}  {end}"


@selects_mesh
def redrive(
    actor: Actor = None,
    *,
    envelope_id: Id = None,
    error: ErrorText = None,
    since: Since = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of dead letters in total.")] = 1000,
    dry_run: DryRun = False,
    yes: Yes = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also redrive if the task is settled, succeeded, was canceled, is paused or went on elsewhere.",
        ),
    ] = False,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """Send dead letters to their actors again, each in the next generation of its task.

    Repair the cause first. After its deadline an envelope needs `asya replay`, which sets a new deadline. At a terminal the command
    asks first. The exit code is 1 if a dead letter is refused; it stays in its queue. So does the letter of a task that was
    replayed or dismissed, which is no error.
    """
    dead_letters, selection = dead_letters_of(selected), filter_of(envelope_id, error, since)
    actors = actors_of(dead_letters, actor)
    total: int | None = None
    if dry_run or asks(yes=yes):
        found = _found(dead_letters, actors, selection, limit)
        total = len(found)
        if envelope_id and not found:
            raise not_found(dead_letters, actors, envelope_id)
        if dry_run or not found:
            _show(dead_letters, actors, found, as_json=as_json)
            return
        confirm(f"redrive {counted(total, 'dead letter')}?")
    sent = refused = settled = 0
    # The letters that are not sent are visible again at once, also after Ctrl-C.
    with (
        leaving(lambda: f"{_counts(sent, refused, settled)}; the others stay in their queues"),
        closing(_selected(dead_letters, actors, selection)) as letters,
    ):
        for letter in tracked(letters, "redrive", total):
            result = dead_letters.redrive(letter, force=force)
            line = _line(result)
            write(line, str(line), as_json=as_json)
            sent += not result.problem
            settled += result.is_settled
            refused += bool(result.problem) and not result.is_settled
            if sent >= limit:
                break
    if envelope_id and not (sent or refused or settled):
        raise not_found(dead_letters, actors, envelope_id)
    for name in actors:
        warn_of_hidden(dead_letters, name)
    echo(_counts(sent, refused, settled), err=True)
    if refused or (envelope_id and settled):
        raise typer.Exit(1)


def _selected(dead_letters: DeadLetters, actors: list[str], selection: Filter) -> Generator[QueuedLetter]:
    """Yield the selected dead letters of the actors. At the end, or when it is closed, all others become visible again."""
    for name in actors:
        with dead_letters.scan(name, selection) as letters:
            yield from letters


def _found(dead_letters: DeadLetters, actors: list[str], selection: Filter, limit: int) -> list[QueuedLetter]:
    with closing(_selected(dead_letters, actors, selection)) as letters:
        return list(islice(letters, limit))


def _show(dead_letters: DeadLetters, actors: list[str], found: list[QueuedLetter], *, as_json: bool) -> None:
    for letter in found:
        line = RedriveLine(letter.actor, letter.id)
        write(line, f"{letter.actor}  {one_line(letter.id)}  would be sent again", as_json=as_json)
    for name in actors:
        warn_of_hidden(dead_letters, name)
    echo(f"{counted(len(found), 'dead letter')} selected; nothing was changed", err=True)


def _line(result: RedriveResult) -> RedriveLine:
    return RedriveLine(result.letter.actor, result.letter.id, result.generation, result.problem)


def _counts(sent: int, refused: int, settled: int) -> str:
    return f"{sent} sent again, {refused} refused" + (f", {settled} settled" if settled else "")


app = typer.Typer(no_args_is_help=True, help="Replay dead letters of reports, which are no envelopes.")


@dataclass(frozen=True)
class ReplayedReports:
    """What `--json` prints of a queue: how many dead letters it has got, or with `--dry-run` would get."""

    queue: str
    count: int


@app.callback()
def reports() -> None:
    """Replay dead letters of reports, which are no envelopes."""


@app.command()
@selects_mesh
def replay(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the dead letters, send nothing.")] = False,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """Send the dead letters of x-reports and x-ends to these queues again.

    Repair the cause first. The gateway sends a dead letter; only then it is deleted. A report that is sent twice
    counts once.
    """
    from asya.protocol import names
    from asya_cli.dlq.letters import ReportLetters

    letters = ReportLetters(selected.client())
    for name in names.REPORT_QUEUES:
        count = letters.count(name) if dry_run else letters.replay(name)
        how = "would be sent again" if dry_run else "sent again"
        text = f"{name}: {count} {how}" if count else f"{name}: no dead letters"
        write(ReplayedReports(name, count), text, as_json=as_json)
