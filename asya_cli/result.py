"""`asya result`: the object that the mesh wrote for an envelope, as it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.options import DEFAULT_STATE, EnvelopeId, Namespace, Region, State, client


def result(
    envelope_id: EnvelopeId,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it here instead of to the screen.")
    ] = None,
    payload: Annotated[bool, typer.Option("--payload", help="Only its payload, not the whole envelope.")] = False,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """Print the envelope that the mesh stored in S3 when it ended, byte for byte."""
    mesh = client(state, namespace, region)
    task = mesh.task(envelope_id)
    stored = mesh.stored(envelope_id, task.result_uri if task else None)
    if stored is None:
        standing = f"its task is {task.status}" if task else "there is no task of that id either"
        raise CommandError(
            f"there is no result of {envelope_id!r}: {standing}", f"asya status {envelope_id} tells more."
        )
    body = payload_of(stored.body, stored.uri) if payload else stored.body
    if output is None:
        sys.stdout.buffer.write(body)
        return
    try:
        output.write_bytes(body)
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {error.strerror}") from error
    typer.echo(f"{stored.uri} → {output}", err=True)


def payload_of(body: bytes, uri: str) -> bytes:
    """The payload of a stored envelope.

    Raises:
        CommandError: The object is no envelope (x-sump keeps what it could not read as it came).
    """
    from asya.protocol.codec import ParseError, decode

    try:
        return bytes(decode(body).payload)
    except ParseError as error:
        raise CommandError(f"{uri} holds no envelope: {error}") from error
