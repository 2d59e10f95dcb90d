"""`asya dlq`: lists, shows and redrives dead letters."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.dlq.reports import app as reports
from asya_cli.errors import CommandError, ExitCode
from asya_cli.options import DEFAULT_STATE, Namespace, Profile, Region, State, client
from asya_cli.output.text import echo, one_line, write_exact, write_json

if TYPE_CHECKING:
    from asya_cli.dlq.letters import DeadLetters, QueuedLetter, RedriveResult

app = typer.Typer(no_args_is_help=True, help="List, show and redrive dead letters: messages that failed too often.")
app.add_typer(reports, name="reports")

_COLUMNS = ("actor", "id", "hop", "generation", "sent", "task", "error")

Actor = Annotated[str | None, typer.Argument(help="Only the dead letters of this actor.", show_default=False)]
Id = Annotated[
    str, typer.Option("--id", help="Only the dead letter with this envelope id or SQS message id.", show_default=False)
]
Error = Annotated[
    str,
    typer.Option("--error", help="Only dead letters with this text in their reason or error.", show_default=False),
]


@app.command("list")
def list_(
    actor: Actor = None,
    *,
    envelope_id: Id = "",
    error: Error = "",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of dead letters per actor.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """List the dead letters of a mesh. The messages stay in their queues."""
    from rich.table import Table

    from asya_cli.dlq.letters import Filter
    from asya_cli.output.console import Console

    dead_letters = _dead_letters(state, namespace, region, profile)
    table = Table(*_COLUMNS, box=None, pad_edge=False)
    for name in _actors(dead_letters, actor):
        with dead_letters.scan(name, Filter(envelope_id, error)) as letters:
            for letter in islice(letters, limit):
                row = _row(dead_letters, letter)
                if as_json:
                    write_json(json.dumps(dict(zip(_COLUMNS, row, strict=True))).encode() + b"\n")
                else:
                    table.add_row(*map(one_line, row))
        _warn_of_hidden(dead_letters, name)
    if table.row_count:
        Console(markup=False).print(table, soft_wrap=True)
    elif not as_json:
        echo("no dead letters", err=True)
    for name in dead_letters.report_queues() if actor is None else ():
        echo(f"{name}: dead letters of reports; `asya dlq reports replay` sends them again", err=True)


@app.command()
def show(
    envelope_id: Annotated[
        str, typer.Argument(metavar="ID", help="The id of the envelope or of the SQS message.", show_default=False)
    ],
    actor: Actor = None,
    *,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """Print a dead letter. The message stays in its queue."""
    from asya_cli.dlq.letters import Filter

    dead_letters = _dead_letters(state, namespace, region, profile)
    count = 0
    for name in _actors(dead_letters, actor):
        with dead_letters.scan(name, Filter(envelope_id)) as letters:
            for letter in letters:
                count += 1
                echo(f"{name}, SQS message {letter.seen.message_id}", err=True)
                write_exact(_pretty(letter.seen.arrival.body))
    if not count:
        raise CommandError(
            f"there is no dead letter {envelope_id!r}", "`asya dlq list` shows all dead letters.", ExitCode.NOT_FOUND
        )


@app.command()
def redrive(
    actor: Actor = None,
    *,
    envelope_id: Id = "",
    error: Error = "",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of dead letters in total.")] = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the selected dead letters, send nothing.")] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Also redrive if the task succeeded, was canceled, is paused or went on elsewhere."
        ),
    ] = False,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """Send dead letters to their actors again, each in the next generation of its task.

    Repair the cause first. After its deadline an envelope needs `asya replay`, which sets a new deadline. Exit code 1
    if a dead letter is refused.
    """
    from asya_cli.dlq.letters import Filter

    dead_letters, selection = _dead_letters(state, namespace, region, profile), Filter(envelope_id, error)
    sent, refused = 0, 0
    for name in _actors(dead_letters, actor):
        with dead_letters.scan(name, selection) as letters:
            for letter in letters:
                if sent >= limit:
                    break
                if dry_run:
                    echo(f"{name}  {one_line(letter.id)}  would be sent again")
                    sent += 1
                    continue
                result = dead_letters.redrive(letter, force=force)
                echo(_outcome(result))
                sent, refused = (sent, refused + 1) if result.problem else (sent + 1, refused)
        _warn_of_hidden(dead_letters, name)
    echo(f"{sent} {'selected' if dry_run else 'sent again'}, {refused} refused", err=True)
    if refused:
        raise typer.Exit(1)


def _dead_letters(state: State, namespace: str | None, region: str | None, profile: str | None) -> DeadLetters:
    from asya_cli.dlq.letters import DeadLetters

    return DeadLetters(client(state, namespace, region, profile))


def _actors(dead_letters: DeadLetters, actor: str | None) -> list[str]:
    return [actor] if actor else dead_letters.actors()


def _row(dead_letters: DeadLetters, letter: QueuedLetter) -> tuple[str, ...]:
    envelope, task = letter.envelope, dead_letters.task(letter)
    sent = letter.seen.arrival.sent_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    status = task.status if task else "no record"
    reason = f" ({task.reason})" if task and task.reason else ""
    error = (envelope.status.error if envelope and envelope.status else None) or (
        (task.error or task.problem) if task else None  # the end of the task comes with the next sweep
    )
    return (
        letter.actor,
        letter.id,
        str(envelope.route.position) if envelope else "-",
        str(envelope.generation) if envelope else "-",
        sent,
        status + reason,
        f"{error.type}: {error.message}"[:120] if error else "",
    )


def _outcome(result: RedriveResult) -> str:
    letter = result.letter
    if result.problem:
        return f"{letter.actor}  {one_line(letter.id)}  refused: {result.problem}"
    how = "unchanged" if result.generation is None else f"in generation {result.generation}"
    return f"{letter.actor}  {one_line(letter.id)}  sent again {how}"


def _warn_of_hidden(dead_letters: DeadLetters, actor: str) -> None:
    """Report messages that another reader hides at the moment."""
    count = dead_letters.hidden_count(actor)
    if count:
        echo(
            f"{actor}: {count} more hidden by another reader, such as a second `asya dlq`; try again in 5 minutes",
            err=True,
        )


def _pretty(body: bytes) -> bytes:
    import msgspec

    try:
        return msgspec.json.format(body, indent=2) + b"\n"
    except msgspec.MsgspecError:
        return body + b"\n"
