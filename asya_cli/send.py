"""`asya send`: an envelope from a file, or from a payload, onto its first actor's queue."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.options import DEFAULT_STATE, Namespace, Region, State, client

if TYPE_CHECKING:
    from asya.protocol.envelope import Envelope


def send(
    event: Annotated[str, typer.Argument(metavar="FILE", help="JSON file; - for standard input.", show_default=False)],
    *,
    actor: Annotated[
        str | None, typer.Option(help="FILE holds only a payload: wrap it in an envelope for this actor.")
    ] = None,
    then: Annotated[
        list[str] | None, typer.Option("--next", help="With --actor: the actors after it, in order. Repeatable.")
    ] = None,
    envelope_id: Annotated[str | None, typer.Option("--id", help="Send under this id.")] = None,
    new_id: Annotated[bool, typer.Option("--new-id", help="Send under a new id, whichever the file has.")] = False,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """Send an envelope to the first actor of its route, and print its id.

    An id names one envelope for good: sent again under the id of one that has ended, it runs but changes nothing that
    was recorded.
    """
    if then and not actor:
        raise CommandError("--next belongs to --actor", "An envelope in a file names the next actors in its route.")
    if envelope_id and new_id:
        raise CommandError("--id and --new-id exclude each other")
    body = read_bytes(event)
    chosen = str(uuid.uuid4()) if new_id else envelope_id
    if actor:
        envelope = wrapped(body, event, actor, then or [], chosen or str(uuid.uuid4()))
    else:
        envelope = as_envelope(body, event, chosen)
    client(state, namespace, region).send(envelope)
    typer.echo(f"sent to {envelope.route.curr}", err=True)
    typer.echo(envelope.id)


def read_bytes(name: str) -> bytes:
    """The content of a file, or of standard input for `-`.

    Raises:
        CommandError: The file cannot be read.
    """
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from error


def as_envelope(body: bytes, source: str, envelope_id: str | None = None) -> Envelope:
    """An envelope as it is written in a file, under another id if one is given, under a new one if it has none.

    Raises:
        CommandError: It is no envelope; the message names the field.
    """
    import msgspec

    from asya.protocol.codec import ParseError, decode

    try:
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        if envelope_id or "id" not in members:
            members = {**members, "id": msgspec.Raw(msgspec.json.encode(envelope_id or str(uuid.uuid4())))}
        envelope = decode(msgspec.json.encode(members))
    except ParseError as error:
        raise CommandError(
            f"{source} holds no envelope: {str(error).removeprefix('Failed to parse message: ')}",
            "If it holds only a payload, say for which actor: --actor NAME.",
        ) from error
    except msgspec.MsgspecError as error:
        raise CommandError(f"{source} holds no JSON object: {error}") from error
    if not envelope.route.curr:
        raise CommandError(f"{source} names no actor: route.curr is empty")
    return envelope


def wrapped(payload: bytes, source: str, actor: str, then: list[str], envelope_id: str) -> Envelope:
    """An envelope around a payload.

    Raises:
        CommandError: The payload is no JSON.
    """
    import msgspec

    from asya.protocol.envelope import Envelope
    from asya.protocol.route import Route

    try:
        raw = msgspec.json.decode(payload, type=msgspec.Raw)
    except msgspec.MsgspecError as error:
        raise CommandError(f"{source} holds no JSON: {error}") from error
    return Envelope(id=envelope_id, route=Route((), actor, tuple(then)), payload=raw)
