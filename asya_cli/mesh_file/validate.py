"""`asya validate`: checks a mesh as a deployment would, without an account."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from asya_cli.output.text import counted, echo


def validate(
    mesh: Annotated[Path, typer.Option("--mesh", help="The mesh file.")] = Path("mesh.yaml"),
    *,
    stage: Annotated[str, typer.Option("--stage", help="The stage to check.")] = "",
    limits: Annotated[
        bool, typer.Option("--limits/--no-limits", help="Also synthesize the stacks, and check the limits of AWS.")
    ] = True,
) -> None:
    """Check a mesh file, its handlers and jobs, their types along every route, and the limits of AWS.

    What is found is what a deployment would refuse, with file, line and key. It needs no account and changes nothing. The exit code
    is 1 if there is a problem. Notes are on standard error. --no-limits takes a second instead of a quarter of a minute.
    """
    from asya_cli.synthesis import synthesize
    from asya_infra.notes import notes
    from asya_local.sources import load

    loaded = load(mesh, stage)
    for note in notes(loaded):
        echo(f"note: {note}", err=True)
    if limits:
        with TemporaryDirectory(prefix="asya-validate-") as folder:
            for line in synthesize(mesh, stage, Path(folder)):
                if not line.startswith("note: "):  # they are above
                    echo(line, err=True)
    actors, tools = counted(len(loaded.mesh.actors), "actor"), counted(len(loaded.mesh.tools), "tool")
    scope = "mesh file, code, types and limits" if limits else "mesh file, code and types"
    echo(f"{mesh}: {loaded.namespace} with {actors} and {tools}: {scope} are right")
