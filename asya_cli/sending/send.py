"""`asya send`: sends an envelope from a file, or a payload in a new envelope.

Warns of hops that will fail, before an envelope is sent (`protocol §5.12`).
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asya.client.errors import MeshError
from asya_cli.errors import CommandError, ExitCode, exit_code_of
from asya_cli.json_input import invalid_json, raw_json, read_bytes
from asya_cli.options import DEFAULT_MESH, MeshOptions, selects_mesh
from asya_cli.output.text import echo
from asya_cli.tasks.records import print_result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.client.mesh_client import MeshClient
    from asya.protocol.envelope import Envelope
    from asya.protocol.mesh_table import MeshTable


def route_warnings(envelope: Envelope, mesh_file: Path, namespace: str) -> Iterator[str]:
    """Check the route of an envelope against the mesh file, if that is the file of the mesh; handlers may set other routes."""
    from asya_infra.mesh_file import MeshFileError, load_mesh
    from asya_infra.mesh_file.table import to_table

    if not mesh_file.exists():
        return
    try:
        loaded = load_mesh(mesh_file, "")
        if namespace.startswith(f"{loaded.mesh.namespace}-"):
            loaded = load_mesh(mesh_file, namespace.removeprefix(f"{loaded.mesh.namespace}-"))
    except MeshFileError as error:
        yield f"the route is not checked, because {mesh_file} is invalid: {error}"
        return
    if loaded.namespace == namespace:
        yield from dict.fromkeys(_problems(envelope, to_table(loaded)))


def _problems(envelope: Envelope, table: MeshTable) -> Iterator[str]:
    from asya.function.targets import TargetError, actual_actor, check_way, leads_on, starters

    # The command itself fails if there is no first actor.
    route = (envelope.route.curr, *envelope.route.next)
    for place, logical in enumerate(route):
        actor = actual_actor(envelope, logical)
        if actor not in table.actors or (place > 0 and not leads_on(table.actors[actor])):
            continue
        try:
            check_way(table, envelope, starters(table, actor), route[place + 1 :])
        except TargetError as error:
            yield str(error)


_ENVELOPE_ADVICE = "If the file has only a payload, name the actor with --actor."


@selects_mesh
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
    wait: Annotated[
        bool, typer.Option("--wait", "-w", help="Wait for the end, and print the payload of the result.")
    ] = False,
    mesh: Annotated[Path, typer.Option("--mesh", help="The mesh file to check the route against.")] = DEFAULT_MESH,
    selected: MeshOptions,
) -> None:
    """Send an envelope to the first actor of its route, and print its id.

    An id names one task for good: a second envelope with it runs, but its end is in no record, so the command warns.
    If the mesh file is there, hops of the route that will fail are named before. With --wait the command prints the payload of the
    result; its exit code is 3 if the task failed or was canceled, and 4 if it waits for an answer.
    """
    if then and not actor:
        raise CommandError("--next needs --actor", "An envelope in a file has the next actors in its route.")
    if envelope_id and new_id:
        raise CommandError("--id and --new-id exclude each other", "Use one of them.")
    body = read_bytes(event)
    if envelope_id is not None:
        check_id(envelope_id)
    override = str(uuid.uuid4()) if new_id else envelope_id
    if actor:
        envelope = wrap_payload(body, event, actor, then or [], override or str(uuid.uuid4()))
    else:
        envelope = parse_envelope(body, event, override)
    if wait and envelope.is_stealth:
        raise CommandError(
            "--wait needs a record, and the envelope asks for none: x-asya-mesh-status is off",
            "Leave out --wait, or the header.",
        )
    client = selected.client()
    for warning in route_warnings(envelope, mesh, client.connection.namespace):
        echo(f"warning: {warning}", err=True)
    if envelope_id or not (new_id or actor):  # a new id names no task
        _check_task(client, envelope.id, wait=wait)
    try:
        client.send(envelope)
    except MeshError as error:
        if exit_code_of(error) is ExitCode.NOT_FOUND:
            from asya_cli.aws_errors import check_actor

            check_actor(client.connection, envelope.route.curr)
        raise
    echo(f"sent to {envelope.route.curr}", err=True)
    if not wait:
        echo(envelope.id)
        return
    echo(f"task {envelope.id}", err=True)
    print_result(client, envelope.id, selected.as_typed())


def check_id(envelope_id: str) -> None:
    """Check the id of a new envelope.

    Raises:
        CommandError: No envelope may have it, or only the mesh gives out such ids.
    """
    from asya.protocol import ids

    if (problem := ids.problem_of(envelope_id)) is not None:
        raise CommandError(f"--id {problem}", "Give another id, or --new-id.")
    if ids.is_reserved(envelope_id):
        raise CommandError(
            f"--id {envelope_id} is a UUID of version 8, which only the mesh gives out, to children among others",
            "Use --new-id, or another id.",
        )


def _check_task(mesh: MeshClient, envelope_id: str, *, wait: bool) -> None:
    """Warn that an id names a task, whose record has one end only.

    Raises:
        CommandError: The task has ended, so there is no other end to wait for.
    """
    try:
        task = mesh.task(envelope_id)
    except MeshError as error:  # who may send may not be allowed to read tasks
        echo(f"warning: it is not known whether {envelope_id!r} names a task already: {error.problem}", err=True)
        return
    if task is None:
        return
    problem = f"{envelope_id!r} names a task that {'has ended' if task.is_terminal else 'is at work'} ({task.status})"
    if wait and task.is_terminal:
        raise CommandError(f"{problem}, so its record shows no other end", "Use --new-id.")
    echo(
        f"warning: {problem}. The envelope runs, but no record shows its end; use --new-id for a task of its own.",
        err=True,
    )


def parse_envelope(body: bytes, source: str, envelope_id: str | None = None) -> Envelope:
    """Parse the envelope in a file. `envelope_id` replaces its id; an envelope without an id gets a new one.

    Raises:
        CommandError: The file is not an envelope; the message names the field.
    """
    import msgspec

    from asya.capabilities.legacy.envelopes import read_envelope
    from asya.protocol.codec import ParseError

    try:
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        if envelope_id or "id" not in members:
            members = {**members, "id": msgspec.Raw(msgspec.json.encode(envelope_id or str(uuid.uuid4())))}
        envelope = read_envelope(msgspec.json.encode(members))
    except ParseError as error:
        name, problem = (
            "standard input" if source == "-" else source,
            str(error).removeprefix("Failed to parse message: "),
        )
        raise CommandError(
            f"{name} is not an envelope: {problem}",
            _ENVELOPE_ADVICE,
        ) from error
    except msgspec.MsgspecError as error:
        raise invalid_json(body, source, error, _ENVELOPE_ADVICE) from error
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
    from asya.protocol.envelope import Envelope, Route

    raw = raw_json(payload, source, "Correct it there and send it again.")
    return Envelope(id=envelope_id, route=Route((), actor, tuple(then)), payload=raw)
