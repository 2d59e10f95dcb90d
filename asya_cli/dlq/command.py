"""`asya dlq`: lists, shows and redrives dead letters."""

from __future__ import annotations

import json
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
from asya_cli.dlq.redrive import app as reports
from asya_cli.dlq.redrive import redrive
from asya_cli.options import JsonLines, MeshOptions, selects_mesh
from asya_cli.output.text import echo, one_line, without_fraction, write_exact, write_json

if TYPE_CHECKING:
    from asya_cli.dlq.letters import DeadLetters, QueuedLetter

app = typer.Typer(no_args_is_help=True, help="List, show and redrive dead letters: messages that failed too often.")
app.add_typer(reports, name="reports")

_ERROR_LIMIT = 400
"""Characters of an error in the table."""
_COLUMNS = ("actor", "id", "hop", "generation", "sent", "task", "error")


@app.command("list")
@selects_mesh
def list_(
    actor: Actor = None,
    *,
    envelope_id: Id = None,
    error: ErrorText = None,
    since: Since = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of dead letters per actor.")] = 100,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """List the dead letters of a mesh. The messages stay in their queues."""
    from rich.table import Table

    from asya_cli.output.console import table_console

    dead_letters, selection = dead_letters_of(selected), filter_of(envelope_id, error, since)
    hidden = 0
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    for column in _COLUMNS:
        table.add_column(column, overflow="fold")
    for name in actors_of(dead_letters, actor):
        with dead_letters.scan(name, selection) as letters:
            for letter in islice(letters, limit):
                row = _row(dead_letters, letter)
                if as_json:
                    write_json(json.dumps(dict(zip(_COLUMNS, row, strict=True))).encode() + b"\n")
                else:
                    table.add_row(*map(one_line, row))
        hidden += warn_of_hidden(dead_letters, name)
    if table.row_count:
        table_console().print(table)
    elif not as_json and not hidden:
        echo("no dead letters", err=True)
    for name in dead_letters.report_queues() if actor is None else ():
        command = f"asya dlq reports replay{dead_letters.options}"
        echo(f"{name}: dead letters of reports; `{command}` sends them again", err=True)


@app.command()
@selects_mesh
def show(
    envelope_id: Annotated[
        str, typer.Argument(metavar="ID", help="The id of the envelope or of the SQS message.", show_default=False)
    ],
    actor: Actor = None,
    *,
    selected: MeshOptions,
) -> None:
    """Print a dead letter. The message stays in its queue."""
    from asya_cli.dlq.letters import Filter

    dead_letters = dead_letters_of(selected)
    count = 0
    actors = actors_of(dead_letters, actor)
    for name in actors:
        with dead_letters.scan(name, Filter(envelope_id)) as letters:
            for letter in letters:
                count += 1
                echo(f"{name}, SQS message {letter.seen.message_id}", err=True)
                write_exact(_pretty(letter.seen.arrival.body))
    if not count:
        raise not_found(dead_letters, actors, envelope_id)


app.command()(redrive)


def _row(dead_letters: DeadLetters, letter: QueuedLetter) -> tuple[str, ...]:
    from asya.capabilities.operations.dead_letters import letter_error
    from asya.protocol.times import format_time

    envelope, task = letter.envelope, dead_letters.task(letter)
    sent = without_fraction(format_time(letter.seen.arrival.sent_at))
    status = task.status if task else "no record"
    reason = f" ({task.reason})" if task and task.reason else ""
    error = letter_error(letter.read, task)
    return (
        letter.actor,
        letter.id,
        str(envelope.route.position) if envelope else "-",
        str(envelope.generation) if envelope else "-",
        sent,
        status + reason,
        f"{error.type}: {error.message}"[:_ERROR_LIMIT] if error else "",
    )


def _pretty(body: bytes) -> bytes:
    import msgspec

    try:
        return msgspec.json.format(body, indent=2) + b"\n"
    except msgspec.MsgspecError:
        return body + b"\n"
