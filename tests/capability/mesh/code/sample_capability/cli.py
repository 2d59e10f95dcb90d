"""The subcommand `asya stamps`."""

import typer


def stamps() -> None:
    """Print the number of stamps of each actor."""
    typer.echo("no stamps")
