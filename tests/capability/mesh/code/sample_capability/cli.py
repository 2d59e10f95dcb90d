"""The subcommand `asya stamps`."""

import typer

from asya_cli.options import MeshOptions, selects_mesh


@selects_mesh
def stamps(*, selected: MeshOptions) -> None:
    """Print the number of stamps of each actor."""
    counts = selected.client().ask("GET", "/api/v1/stamps", dict[str, int]) or {}
    for actor, count in sorted(counts.items()):
        typer.echo(f"{actor}: {count}")
