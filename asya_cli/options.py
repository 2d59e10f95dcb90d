"""The options that select a mesh, shared by the commands."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from asya.client.mesh_client import MeshClient

_COMMAND = re.compile(r"`(asya [^`]+)`")

DEFAULT_STATE = Path(".asya")
DEFAULT_MESH = Path("mesh.yaml")

MeshFile = Annotated[Path, typer.Option("--mesh", help="The mesh file.")]
Stage = Annotated[str, typer.Option("--stage", help="The stage of the mesh file.", show_default=False)]
State = Annotated[Path, typer.Option("--state", help="State folder of the local cloud to use.")]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", help="Use the mesh with this namespace on AWS instead, with your AWS credentials."),
]
Region = Annotated[str | None, typer.Option("--region", help="AWS region, with --namespace.")]
Profile = Annotated[
    str | None, typer.Option("--profile", help="The profile of your AWS configuration, with --namespace.")
]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
JsonDocument = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
EnvelopeId = Annotated[str, typer.Argument(metavar="ID", help="The envelope's id.", show_default=False)]

OptionalId = Annotated[str | None, typer.Argument(metavar="ID", help="The envelope's id.", show_default=False)]


def completed(text: str, options: str) -> str:
    """Add the options that select the mesh to the commands in a text of the mesh itself, which does not know them."""
    return _COMMAND.sub(lambda match: f"`{match[1]}{options}`", text)


def not_empty(text: str | None) -> str | None:
    """Refuse an empty text: as a filter it would select everything, such as after a misspelled variable of a shell.

    Raises:
        BadParameter: The text is empty.
    """
    if text == "":
        raise typer.BadParameter("it is empty; leave it out to select all")
    return text


def client(state: Path, namespace: str | None, region: str | None, profile: str | None) -> MeshClient:
    """Connect to the mesh that the options select.

    Raises:
        CommandError: There is no such mesh.
    """
    # A late import: the AWS SDK would slow down `asya --help`.
    from asya.client.connection import find_on_aws, read_local
    from asya.client.mesh_client import MeshClient

    return MeshClient(find_on_aws(namespace, region, profile) if namespace else read_local(state))


def as_typed(state: Path, namespace: str | None, region: str | None, profile: str | None) -> str:
    """Return the options that select this mesh as a user types them, with a space before.

    The default folder is named too: without it, a default namespace would select another mesh.
    """
    if namespace:
        given = (("--namespace", namespace), ("--region", region), ("--profile", profile))
        return "".join(f" {name} {quote(value)}" for name, value in given if value)
    return f" --state {quote(str(state))}"
