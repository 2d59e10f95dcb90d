"""The command line of `asya contracts`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.mesh_file.loading import load
from asya_cli.options import DEFAULT_MESH, JsonLines, MeshFile, Profile
from asya_cli.output.results import write
from asya_cli.output.text import counted, echo

if TYPE_CHECKING:
    from asya_infra.contracts.mesh_contracts import MeshContracts
    from asya_infra.mesh_file import LoadedMesh


def contracts(
    mesh: MeshFile = DEFAULT_MESH,
    *,
    stage: Annotated[str, typer.Option("--stage", help="The stage to deploy.")] = "",
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="Compare with the mesh file of this git revision, or in this folder, instead of with what is deployed.",
            metavar="REVISION|FOLDER",
            show_default=False,
        ),
    ] = None,
    as_json: JsonLines = False,
    region: Annotated[
        str | None,
        typer.Option("--region", help="AWS region; by default that of the stage, or of your AWS configuration."),
    ] = None,
    profile: Profile = None,
) -> None:
    """Tell which changes of types break envelopes in flight or callers. Changes nothing.

    Compares the types of handlers, payload jobs and tools with those of the deployed mesh, in the account of your AWS
    credentials. With --against it needs no account.

    Exit code 0 if nothing breaks, 1 if something does. What is not known on one side breaks nothing.
    """
    from asya_cli.contracts.earlier import deployed_contracts, earlier_contracts
    from asya_infra.contracts.breaking import breaking_changes
    from asya_infra.deployment.contract_changes import summary

    loaded, after = _current(mesh, stage)
    if against is not None:
        label, before = f"{against} of {mesh.name}", earlier_contracts(mesh, stage, against)
    else:
        before, label = deployed_contracts(loaded, region, profile)
    if before is None:
        return
    findings = breaking_changes(before, after)
    for problem in sorted(loaded.source.problem(each.place, str(each)) for each in findings):
        write(problem, str(problem), as_json=as_json)
    if findings:
        echo(summary(len(findings)), err=True)
        raise typer.Exit(1)
    if as_json:
        return
    actors, tools = before.actors.keys() & after.actors.keys(), before.tools.keys() & after.tools.keys()
    compared = f"{counted(len(actors), 'actor')} with types and {counted(len(tools), 'tool')}"
    echo(f"nothing breaks: {compared} compared with {label}")


def _current(mesh: Path, stage: str) -> tuple[LoadedMesh, MeshContracts]:
    """Read the mesh file and its contracts.

    Raises:
        CommandError: The mesh file is invalid, or its types conflict.
    """
    from asya_infra.contracts.check import with_types
    from asya_infra.contracts.mesh_contracts import contracts_of
    from asya_infra.contracts.mesh_types import read_mesh_types, tool_schemas
    from asya_infra.mesh_file import MeshFileError
    from asya_infra.product.places import BUILD

    loaded = load(mesh, stage)
    try:
        types = read_mesh_types(loaded, BUILD)
        checked = with_types(loaded, types)
    except MeshFileError as error:
        raise CommandError(str(error)) from error
    for note in checked.notes:
        echo(f"note: {note}", err=True)
    return loaded, contracts_of(
        loaded.mesh, types.functions, tool_schemas(loaded.mesh, types), loaded.capabilities.registry
    )
