"""Which mesh a command is about: the options that all of them share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from asya_cli.mesh_client import MeshClient

DEFAULT_STATE = Path(".asya")

State = Annotated[Path, typer.Option("--state", help="State folder of the local cloud to talk to.")]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", help="Talk to the mesh of this namespace on AWS instead, with your AWS credentials."),
]
Region = Annotated[str | None, typer.Option("--region", help="AWS region, with --namespace.")]
EnvelopeId = Annotated[str, typer.Argument(metavar="ID", help="The envelope's id.", show_default=False)]


def client(state: Path, namespace: str | None, region: str | None) -> MeshClient:
    """A client of the mesh that the options name.

    Raises:
        CommandError: There is no such mesh.
    """
    # Only here: `asya --help` does not wait for the AWS SDK.
    from asya_cli.connection import find_on_aws, read_local
    from asya_cli.mesh_client import MeshClient

    return MeshClient(find_on_aws(namespace, region) if namespace else read_local(state))
