"""`asya data`: lists, reads and writes the data of a mesh, whichever cloud has it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.errors import CommandError, ExitCode
from asya_cli.json_input import unreadable, unwritable
from asya_cli.options import JsonLines, MeshOptions, selects_mesh
from asya_cli.output.files import whole_file
from asya_cli.output.results import write
from asya_cli.output.text import counted, echo, one_line

if TYPE_CHECKING:
    from typing import BinaryIO

_LIMIT = 5 * 1024**3

app = typer.Typer(no_args_is_help=True, help="List, read and write the data of a mesh, which payloads refer to.")

Reference = Annotated[
    str, typer.Argument(metavar="REFERENCE", help="Its name in payloads, such as raw/2026.csv.", show_default=False)
]


@app.command()
@selects_mesh
def ls(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Only what is below this folder, such as raw/.")] = "",
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of files.")] = 1000,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """List the files in the data of a mesh: bytes, time of the last change, reference."""
    from asya.client.resources import list_data

    mesh = selected.client()
    prefix = f"{_checked(folder.rstrip('/'))}/" if folder.strip("/") else ""
    count = 0
    for found in list_data(mesh.connection, prefix):
        if count == limit:
            echo(f"and more; -n {limit * 10} shows {limit * 10:,}", err=True)
            return
        count += 1
        text = f"{found.size:>14,}  {found.changed_at:%Y-%m-%dT%H:%M:%SZ}  {one_line(found.reference)}"
        write(found, text, as_json=as_json)
    if not count:
        echo(f"no file below {mesh.connection.data.uri}{prefix}", err=True)


@app.command()
@selects_mesh
def get(
    reference: Reference,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Where to write it; by default, or with -, standard output.")
    ] = None,
    *,
    selected: MeshOptions,
) -> None:
    """Write a file of the data to standard output, or to a file, which is replaced when it is whole."""
    from botocore.exceptions import BotoCoreError

    from asya.client.resources import open_object

    name = _checked(reference)
    if file is not None and file.is_dir():
        raise CommandError(f"{file} is a folder", f"Give a file, such as {file / Path(name).name}.")
    mesh = selected.client()
    data = mesh.connection.data
    body = open_object(mesh.connection, data.bucket, data.prefix + name)
    if body is None:
        command = f"asya data ls{selected.as_typed()}"
        raise CommandError(f"there is no {data.uri}{name}", f"`{command}` lists the files.", ExitCode.NOT_FOUND)
    try:
        if file is None or str(file) == "-":
            _print(body)
            return
        with whole_file(file) as output:
            shutil.copyfileobj(body, output)
    except OSError as error:
        if file is None or str(file) == "-":
            raise
        raise unwritable(file, error) from error
    except BotoCoreError as error:
        raise CommandError(f"reading {data.uri}{name} broke off: {error}", code=ExitCode.UNREACHABLE) from error
    echo(f"{file}: {counted(file.stat().st_size, 'byte')}", err=True)


def _print(body: BinaryIO) -> None:
    """Write a file to standard output; a terminal gets control characters as escapes."""
    if sys.stdout.isatty():
        echo(body.read().decode("utf-8", "backslashreplace"))
    else:
        shutil.copyfileobj(body, sys.stdout.buffer)


@app.command()
@selects_mesh
def put(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file; - reads standard input.", show_default=False)],
    reference: Reference,
    *,
    selected: MeshOptions,
) -> None:
    """Put a file into the data of the mesh, under the reference that payloads use, and print its URI.

    It replaces an object with the same name. A file has 5 GB at most; for larger ones use a client of S3.
    """
    name = _checked(reference, is_new=True)
    mesh = selected.client()
    if str(file) == "-":
        echo(mesh.upload(name, sys.stdin.buffer.read()))
        return
    try:
        if file.stat().st_size > _LIMIT:
            raise CommandError(f"{file} has more than 5 GB", "Upload it with a client of S3, such as the AWS CLI.")
        content: BinaryIO
        with file.open("rb") as content:
            uri = mesh.upload(name, content)
    except OSError as error:
        raise unreadable(file, error) from error
    echo(uri)


def _checked(reference: str, *, is_new: bool = False) -> str:
    from asya.protocol.data_references import check_new_reference, check_path, check_reference

    try:
        # Someone who types a path for a new file does not mean a key with `..` in it.
        return check_path(check_new_reference(reference)) if is_new else check_reference(reference)
    except ValueError as error:
        raise CommandError(str(error)) from error
