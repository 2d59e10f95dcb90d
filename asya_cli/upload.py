"""`asya upload`: puts a file into the data of a mesh."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.options import DEFAULT_STATE, Namespace, Profile, Region, State, client
from asya_cli.output.text import echo

_LIMIT = 5 * 1024**3


def upload(
    file: Annotated[Path, typer.Argument(help="The file.", show_default=False)],
    reference: Annotated[str, typer.Argument(help="Its name in payloads, such as raw/2026.csv.", show_default=False)],
    *,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """Put a file into the data of the mesh, under the reference that payloads use, and print its URI.

    It replaces an object with the same name. A file has 5 GB at most; for larger ones use a client of S3.
    """
    from asya.protocol.data_references import check_reference

    try:
        name = check_reference(reference)
        if file.stat().st_size > _LIMIT:
            raise CommandError(f"{file} has more than 5 GB", "Upload it with a client of S3, such as the AWS CLI.")
        with file.open("rb") as content:
            uri = client(state, namespace, region, profile).upload(name, content)
    except ValueError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from error
    echo(uri)
