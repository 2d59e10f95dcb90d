"""What the commands about dead letters share: the options that select letters, and the queues to scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli import clock
from asya_cli.errors import CommandError, ExitCode
from asya_cli.options import MeshOptions, not_empty
from asya_cli.output.text import echo

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asya_cli.dlq.letters import DeadLetters, Filter

Actor = Annotated[
    str | None,
    typer.Argument(help="Only the dead letters of this actor.", callback=not_empty, show_default=False),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Only the dead letter with this envelope id or SQS message id.",
        callback=not_empty,
        show_default=False,
    ),
]
ErrorText = Annotated[
    str | None,
    typer.Option(
        "--error",
        help="Only dead letters with this text in their reason or error.",
        callback=not_empty,
        show_default=False,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        help="Only messages sent since then: 90s, 30m, 2h, 7d, or a time such as 2026-11-24T22:00:00Z.",
        callback=not_empty,
        show_default=False,
    ),
]

_HIDDEN = "hidden by another reader, such as a second `asya dlq` or one that was interrupted"
_LATER = "Try again in 5 minutes."


def dead_letters_of(selected: MeshOptions) -> DeadLetters:
    """Connect to the dead-letter queues of the mesh that the options select.

    Raises:
        CommandError: There is no such mesh.
    """
    from asya_cli.dlq.letters import DeadLetters

    return DeadLetters(selected.client(), selected.as_typed())


def filter_of(envelope_id: str | None, error: str | None, since: str | None) -> Filter:
    """Return the filter of these options.

    Raises:
        CommandError: `since` is neither an age nor a time.
    """
    from asya_cli.dlq.letters import Filter
    from asya_cli.tasks.selection import moment

    earliest = None if since is None else moment(since, clock.now())
    return Filter(envelope_id or "", error or "", earliest)


def actors_of(dead_letters: DeadLetters, actor: str | None) -> list[str]:
    """Return the actors whose dead letters to scan."""
    return [actor] if actor else dead_letters.actors()


def warn_of_hidden(dead_letters: DeadLetters, actor: str) -> int:
    """Report messages that another reader hides at the moment, and return their number."""
    count = dead_letters.hidden_count(actor)
    if count:
        echo(f"{actor}: {count} {_HIDDEN}; try again in 5 minutes", err=True)
    return count


def not_found(dead_letters: DeadLetters, actors: Iterable[str], message_id: str) -> CommandError:
    """Return the error for an id that no dead letter of these actors has, unless it is a hidden one."""
    problem = f"there is no dead letter {message_id!r}"
    count = sum(map(dead_letters.hidden_count, actors))
    if count:
        return CommandError(f"{problem} among those that can be read; {count} {_HIDDEN}", _LATER, ExitCode.NOT_FOUND)
    return CommandError(problem, f"`asya dlq list{dead_letters.options}` shows all dead letters.", ExitCode.NOT_FOUND)
