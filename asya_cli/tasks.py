"""`asya list` and `asya cancel`: which tasks there are, and ending one before its time."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from asya_cli.options import DEFAULT_STATE, EnvelopeId, Namespace, Region, State, client

Status = Literal["pending", "running", "paused", "succeeded", "failed", "canceled"]


def list_tasks(
    *,
    status: Annotated[Status | None, typer.Option("--status", help="Only tasks of this status.")] = None,
    parent: Annotated[str | None, typer.Option("--parent", metavar="ID", help="Only children of this task.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="As the gateway answers it, one task on each line.")] = False,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """Tell which tasks there are, newest first: your own, everybody's if you operate the mesh."""
    import msgspec
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from asya_cli.task_report import COLOURS

    found = client(state, namespace, region).tasks(status=status, parent=parent, limit=limit)
    if as_json:
        for task in found:
            sys.stdout.buffer.write(msgspec.json.encode(task) + b"\n")
        return
    if not found:
        typer.echo("no tasks", err=True)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("task", "status", "%", "actor", "created", "updated"):
        table.add_column(column, no_wrap=column == "task", justify="right" if column == "%" else "left")
    for task in found:
        word = Text(task.status, style=COLOURS.get(task.status, "cyan"))
        table.add_row(task.id, word, str(task.progress_percent), task.actor, task.created_at[:19], task.updated_at[:19])
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def cancel(
    envelope_id: EnvelopeId,
    *,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """End a task before its time, with all that came of it and its job runs. One that has ended stays as it ended."""
    mesh = client(state, namespace, region)
    mesh.cancel(envelope_id)
    task = mesh.task(envelope_id)
    typer.echo(task.status if task is not None else "canceled")
