"""`asya validate`: checks a mesh as a deployment would, without an account.

`asya schema` prints the JSON Schema of the mesh file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.errors import CommandError, ExitCode
from asya_cli.mesh_file.loading import check_exists, own_capabilities
from asya_cli.options import DEFAULT_MESH, JsonDocument, MeshFile
from asya_cli.output.text import counted, echo, write_json, write_json_line

if TYPE_CHECKING:
    from asya_infra.mesh_file import LoadedMesh
    from asya_infra.mesh_file.source import Problem


@dataclass(frozen=True)
class Validation:
    """What `--json` prints.

    Attributes:
        problems: What a deployment would refuse; empty if the mesh is valid.
        notes: What its author should know.
    """

    mesh: str
    namespace: str = ""
    actors: int = 0
    tools: int = 0
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def validate(
    mesh: MeshFile = DEFAULT_MESH,
    *,
    stage: Annotated[str, typer.Option("--stage", help="The stage to check.")] = "",
    limits: Annotated[
        bool, typer.Option("--limits/--no-limits", help="Also synthesize the stacks, and check the limits of AWS.")
    ] = True,
    as_json: JsonDocument = False,
) -> None:
    """Check a mesh file, its handlers and jobs, their types along every route, and the limits of AWS.

    What is found is what a deployment would refuse, and handlers that no function can import, with file, line and key. It needs no
    account and changes nothing. The exit code is 1 if there is a problem. Notes are on standard error. --no-limits saves
    some seconds, if the mesh has changed.
    """
    from asya_infra.imports.check import load_importable
    from asya_infra.mesh_file import MeshFileError
    from asya_infra.product.places import BUILD

    check_exists(mesh)
    try:
        loaded = load_importable(mesh, stage, BUILD)
    except MeshFileError as error:
        if as_json:
            write_json_line(Validation(str(mesh), problems=error.problems))
            raise typer.Exit(ExitCode.COMMAND_FAILED) from None
        raise CommandError(str(error)) from error
    remarks = _remarks(loaded, stage, limits=limits)
    if as_json:
        counts = len(loaded.mesh.actors), len(loaded.mesh.tools)
        write_json_line(Validation(str(mesh), loaded.namespace, *counts, notes=remarks))
        return
    for remark in remarks:
        echo(remark, err=True)
    actors, tools = counted(len(loaded.mesh.actors), "actor"), counted(len(loaded.mesh.tools), "tool")
    scope = "mesh file, code, types and limits" if limits else "mesh file, code and types"
    echo(f"{mesh}: {loaded.namespace} with {actors} and {tools}: {scope} are right")


def _remarks(loaded: LoadedMesh, stage: str, *, limits: bool) -> tuple[str, ...]:
    """Return the notes on a valid mesh, and with `limits` the quotas of AWS that it exceeds."""
    from asya_cli.synthesis import synthesize
    from asya_infra.notes import notes

    found = [f"note: {note}" for note in notes(loaded)]
    if limits:
        found += synthesize(loaded, stage).findings.quotas
    return tuple(found)


def schema(mesh: MeshFile = DEFAULT_MESH) -> None:
    """Print the JSON Schema of the mesh file, with which editors complete and check its keys.

    A mesh file that names capabilities of its own has their kinds and options too.
    """
    from asya_infra.mesh_file.capability_model import mesh_model
    from asya_infra.mesh_file.schema import PATH, schema_text

    named = own_capabilities(mesh)
    write_json(PATH.read_bytes() if named is None else schema_text(mesh_model(named.registry)).encode())
