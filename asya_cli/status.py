"""`asya status`: shows a task and the stored envelope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.options import DEFAULT_STATE, EnvelopeId, Namespace, Region, State, client
from asya_cli.output.text import write_json

if TYPE_CHECKING:
    from asya.protocol.envelope import Envelope
    from asya_cli.mesh_client import StoredObject

FOLLOW_SECONDS = 24 * 3600.0


def status(
    envelope_id: EnvelopeId,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show the progress until the task ends.")] = False,
    timeline: Annotated[bool, typer.Option("--timeline", help="Also show each hop with its times.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the record as JSON, as the gateway answers it.")
    ] = False,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """Show a task: its status, route, error with traceback, and the address of the stored envelope."""
    import msgspec

    from asya_cli.output.console import Console
    from asya_cli.task_report import show_task_report, show_timeline

    mesh = client(state, namespace, region)
    if follow:
        from asya_cli.progress.display import follow as follow_task

        task = follow_task(mesh, envelope_id, Console(stderr=True), FOLLOW_SECONDS)
    else:
        task = mesh.task(envelope_id)
    if as_json:
        if task is None:
            raise CommandError(f"there is no task {envelope_id!r}")
        write_json(msgspec.json.format(msgspec.json.encode(task), indent=2) + b"\n")
        return
    stored = mesh.stored(envelope_id, task.result_uri if task else None)
    if task is None and stored is None:
        raise CommandError(
            f"there is no record of {envelope_id!r}: no task, and no object under {mesh.connection.results.uri}",
            "Possible causes: the id is wrong; no sidecar has received the envelope yet (check the queue and\n"
            "`asya dlq list`); the task belongs to another owner; the record has expired.",
        )
    console = Console()
    show_task_report(console, task, stored, envelope_of(stored))
    if timeline:
        show_timeline(console, mesh.timeline(envelope_id))


def envelope_of(stored: StoredObject | None) -> Envelope | None:
    """Decode the stored envelope; None without an object or if the object is not an envelope."""
    from asya.protocol.codec import ParseError, decode

    try:
        return decode(stored.body) if stored else None
    except ParseError:
        return None
