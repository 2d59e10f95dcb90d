"""`asya dlq`: what lies in the dead-letter queues, and how it is sent again."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.options import DEFAULT_STATE, Namespace, Region, State, client

if TYPE_CHECKING:
    from asya_cli.dead_letters import DeadLetters, Letter, Redriven

app = typer.Typer(no_args_is_help=True, help="Messages that could not be delivered: see them, send them again.")

Actor = Annotated[str | None, typer.Argument(help="Only those of this actor.", show_default=False)]
Id = Annotated[str, typer.Option("--id", help="Only this envelope, or this SQS message.", show_default=False)]
Error = Annotated[
    str, typer.Option("--error", help="Only those with this text in their reason or error.", show_default=False)
]


@app.command("list")
def list_(
    actor: Actor = None,
    *,
    envelope_id: Id = "",
    error: Error = "",
    limit: Annotated[int, typer.Option(min=1, help="Not more of an actor than this.")] = 100,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """List the dead letters of a mesh. They stay where they are."""
    from rich.console import Console
    from rich.table import Table

    from asya_cli.dead_letters import Wanted

    office = _office(state, namespace, region)
    table = Table("queue of", "id", "hop", "generation", "sent", "status", "error", box=None, pad_edge=False)
    for name in _actors(office, actor):
        with office.look(name, Wanted(envelope_id, error)) as letters:
            for letter in islice(letters, limit):
                table.add_row(*_row(office, letter))
        _tell_hidden(office, name)
    if table.row_count:
        Console().print(table, soft_wrap=True)
    else:
        typer.echo("no dead letters", err=True)


@app.command()
def show(
    envelope_id: Annotated[
        str, typer.Argument(metavar="ID", help="Of the envelope, or of the SQS message.", show_default=False)
    ],
    actor: Actor = None,
    *,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """Print a dead letter as it lies in its queue."""
    from asya_cli.dead_letters import Wanted

    office = _office(state, namespace, region)
    found = 0
    for name in _actors(office, actor):
        with office.look(name, Wanted(envelope_id)) as letters:
            for letter in letters:
                found += 1
                typer.echo(f"{name}, SQS message {letter.seen.message_id}", err=True)
                sys.stdout.buffer.write(_pretty(letter.seen.arrival.body))
    if not found:
        raise CommandError(f"there is no dead letter {envelope_id!r}", "`asya dlq list` shows those that there are.")


@app.command()
def redrive(
    actor: Actor = None,
    *,
    envelope_id: Id = "",
    error: Error = "",
    limit: Annotated[int, typer.Option(min=1, help="Not more than this.")] = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which are meant.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also those whose task succeeded, was canceled or goes on elsewhere.")
    ] = False,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """Send dead letters to their actors again, each as a new generation of its task.

    Mend the cause first. An envelope whose deadline has passed is refused: `asya replay` gives it a new one.
    """
    from asya_cli.dead_letters import Wanted

    office, wanted = _office(state, namespace, region), Wanted(envelope_id, error)
    sent, refused = 0, 0
    for name in _actors(office, actor):
        with office.look(name, wanted) as letters:
            for letter in letters:
                if sent >= limit:
                    break
                if dry_run:
                    typer.echo(f"{name}  {letter.id}  would be sent again")
                    sent += 1
                    continue
                done = office.redrive(letter, force=force, now=datetime.now(UTC))
                typer.echo(_outcome(done))
                sent, refused = (sent, refused + 1) if done.problem else (sent + 1, refused)
        _tell_hidden(office, name)
    typer.echo(f"{sent} {'meant' if dry_run else 'sent again'}, {refused} refused", err=True)
    if refused:
        raise typer.Exit(1)


def _office(state: State, namespace: str | None, region: str | None) -> DeadLetters:
    from asya_cli.dead_letters import DeadLetters

    return DeadLetters(client(state, namespace, region))


def _actors(office: DeadLetters, actor: str | None) -> list[str]:
    return [actor] if actor else office.actors()


def _row(office: DeadLetters, letter: Letter) -> tuple[str, ...]:
    envelope, task = letter.envelope, office.task(letter)
    sent = letter.seen.arrival.sent_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    word = task.status if task else "no record"
    reason = f" ({task.reason})" if task and task.reason else ""
    error = (envelope.status.error if envelope and envelope.status else None) or (task.error if task else None)
    return (
        letter.actor,
        letter.id,
        str(envelope.route.position) if envelope else "-",
        str(envelope.generation) if envelope else "-",
        sent,
        word + reason,
        f"{error.type}: {error.message}"[:120] if error else "",
    )


def _outcome(done: Redriven) -> str:
    letter = done.letter
    if done.problem:
        return f"{letter.actor}  {letter.id}  refused: {done.problem}"
    how = "as it is" if done.generation is None else f"in generation {done.generation}"
    return f"{letter.actor}  {letter.id}  sent again {how}"


def _tell_hidden(office: DeadLetters, actor: str) -> None:
    """Somebody else may be looking: what they look at cannot be seen."""
    hidden = office.hidden(actor)
    if hidden:
        typer.echo(
            f"{actor}: {hidden} more cannot be seen just now, somebody else looks at them; try again in a while",
            err=True,
        )


def _pretty(body: bytes) -> bytes:
    import msgspec

    try:
        return msgspec.json.format(body, indent=2) + b"\n"
    except msgspec.MsgspecError:
        return body + b"\n"
