"""`asya result`: prints the stored object of an envelope that has ended."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from asya_cli.errors import CommandError, ExitCode
from asya_cli.json_input import unwritable
from asya_cli.options import EnvelopeId, MeshOptions, selects_mesh
from asya_cli.output.files import whole_file
from asya_cli.output.text import echo, write_exact
from asya_cli.tasks.records import awaited_task, envelope_of, exit_code, no_task, status_of


@selects_mesh
def result(
    envelope_id: EnvelopeId,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the object to this file instead of standard output.")
    ] = None,
    payload: Annotated[bool, typer.Option("--payload", help="Only the payload of the envelope.")] = False,
    selected: MeshOptions,
) -> None:
    """Print the stored envelope of a task that has ended, byte for byte.

    The exit code is 3 if the task failed or was canceled.
    """
    mesh = selected.client()
    task = mesh.task(envelope_id)
    stored = mesh.stored(envelope_id, task.result_uri if task else None)
    if stored is None and task is None:
        task = awaited_task(mesh, envelope_id)
        stored = mesh.stored(envelope_id, task.result_uri if task else None)
    if stored is None:
        options = selected.as_typed()
        if task is None:
            raise no_task(envelope_id, options)
        follows = "" if task.is_terminal else " --follow"
        raise CommandError(
            f"there is no result of {envelope_id!r}: its task is {task.status}",
            f"`asya status {quote(envelope_id)}{follows}{options}` shows it.",
            ExitCode.NOT_FOUND,
        )
    body = payload_of(stored.body, stored.uri) if payload else stored.body
    if output is None:
        write_exact(body)
    else:
        try:
            with whole_file(output) as file:
                file.write(body)
        except OSError as error:
            raise unwritable(output, error) from error
        echo(f"{stored.uri} → {output}", err=True)
    raise typer.Exit(exit_code(status_of(task, envelope_of(stored))))


def payload_of(body: bytes, uri: str) -> bytes:
    """Return the payload of a stored envelope as a document of its own, with a newline at its end.

    Raises:
        CommandError: The object is not an envelope. x-sump stores unreadable messages unchanged.
    """
    import msgspec

    from asya.protocol.codec import ParseError, decode

    try:
        return msgspec.json.format(bytes(decode(body).payload), indent=2) + b"\n"
    except ParseError as error:
        raise CommandError(f"{uri} is not an envelope: {error}", "Run the command without --payload.") from error
