"""`asya send`: sends an envelope from a file, or a payload in a new envelope."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.options import DEFAULT_STATE, Namespace, Region, State, client
from asya_cli.output.text import echo
from asya_cli.route_check import route_warnings

if TYPE_CHECKING:
    from asya.protocol.envelope import Envelope


def send(
    event: Annotated[
        str, typer.Argument(metavar="FILE", help="A JSON file; - reads standard input.", show_default=False)
    ],
    *,
    actor: Annotated[
        str | None, typer.Option(help="FILE has only a payload: send it to this actor in a new envelope.")
    ] = None,
    then: Annotated[
        list[str] | None,
        typer.Option("--next", help="With --actor: the actors after it, in order. Repeat the option for each."),
    ] = None,
    envelope_id: Annotated[str | None, typer.Option("--id", help="Use this id instead of the one in the file.")] = None,
    new_id: Annotated[
        bool, typer.Option("--new-id", help="Use a new random id instead of the one in the file.")
    ] = False,
    mesh: Annotated[Path, typer.Option("--mesh", help="The mesh file to check the route against.")] = Path("mesh.yaml"),
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """Send an envelope to the first actor of its route, and print its id.

    An id names one task for good. A second envelope with the id of an ended task runs, but it changes no record.
    If the mesh file is there, hops of the route that will fail are named before.
    """
    if then and not actor:
        raise CommandError("--next needs --actor", "An envelope in a file has the next actors in its route.")
    if envelope_id and new_id:
        raise CommandError("--id and --new-id exclude each other", "Use one of them.")
    body = read_bytes(event)
    override = str(uuid.uuid4()) if new_id else envelope_id
    if actor:
        envelope = wrap_payload(body, event, actor, then or [], override or str(uuid.uuid4()))
    else:
        envelope = parse_envelope(body, event, override)
    selected = client(state, namespace, region)
    for warning in route_warnings(envelope, mesh, selected.connection.namespace):
        echo(f"warning: {warning}", err=True)
    selected.send(envelope)
    echo(f"sent to {envelope.route.curr}", err=True)
    echo(envelope.id)


def read_bytes(name: str) -> bytes:
    """Read a file, or standard input for `-`.

    Raises:
        CommandError: The file cannot be read.
    """
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror}") from error


def parse_envelope(body: bytes, source: str, envelope_id: str | None = None) -> Envelope:
    """Parse the envelope in a file. `envelope_id` replaces its id; an envelope without an id gets a new one.

    Raises:
        CommandError: The file is not an envelope; the message names the field.
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
            f"{source} is not an envelope: {str(error).removeprefix('Failed to parse message: ')}",
            "If the file has only a payload, name the actor with --actor.",
        ) from error
    except msgspec.MsgspecError as error:
        raise CommandError(f"{source} is not a JSON object: {error}") from error
    if not envelope.route.curr:
        raise CommandError(
            f"{source} has no actor to send to: route.curr is empty", "Set route.curr to the first actor."
        )
    return envelope


def wrap_payload(payload: bytes, source: str, actor: str, then: list[str], envelope_id: str) -> Envelope:
    """Return a new envelope with a payload from a file.

    Raises:
        CommandError: The payload is not valid JSON.
    """
    import msgspec

    from asya.protocol.envelope import Envelope
    from asya.protocol.route import Route

    try:
        raw = msgspec.json.decode(payload, type=msgspec.Raw)
    except msgspec.MsgspecError as error:
        raise CommandError(f"{source} is not valid JSON: {error}") from error
    return Envelope(id=envelope_id, route=Route((), actor, tuple(then)), payload=raw)
