"""The `asya` command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from asya_cli.demo import demo
from asya_cli.errors import CommandError
from asya_cli.local import app as local
from asya_cli.result import result
from asya_cli.send import send
from asya_cli.status import status
from infra.local.errors import LocalCloudError

if TYPE_CHECKING:
    import click


class Commands(TyperGroup):
    """The commands, with failures told to a person: what was wrong, what to do, exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except CommandError as error:
            typer.secho(f"asya: {error.problem}", fg="red", err=True)
            if error.advice:
                typer.echo(error.advice, err=True)
        except LocalCloudError as error:
            typer.secho(f"asya: {error.message}", fg="red", err=True)
            if error.detail:
                typer.echo(error.detail, err=True)
        raise typer.Exit(1)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A mesh of actors: run one on this machine, send to it, see what became of an envelope.",
)
app.command()(demo)
app.command()(send)
app.command()(status)
app.command()(result)
app.add_typer(local, name="local")


if __name__ == "__main__":
    app()
