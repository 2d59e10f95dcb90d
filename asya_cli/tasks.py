"""`asya list` and `asya cancel`: lists and cancels tasks."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from asya_cli.options import DEFAULT_STATE, EnvelopeId, Namespace, Region, State, client

Status = Literal["pending", "running", "paused", "succeeded", "failed", "canceled"]


def list_tasks(
    *,
    status: Annotated[Status | None, typer.Option("--status", help="Only tasks with this status.")] = None,
    parent: Annotated[str | None, typer.Option("--parent", metavar="ID", help="Only children of this task.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="Maximum number of tasks.")] = 20,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line, as the gateway answers.")
    ] = False,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """List tasks, newest first: your own, or all tasks if you are an operator."""
    import msgspec
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from asya_cli.task_report import COLORS

    views = client(state, namespace, region).tasks(status=status, parent=parent, limit=limit)
    if as_json:
        for task in views:
            sys.stdout.buffer.write(msgspec.json.encode(task) + b"\n")
        return
    if not views:
        typer.echo("no tasks", err=True)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("task", "status", "%", "actor", "created", "updated"):
        table.add_column(column, no_wrap=column == "task", justify="right" if column == "%" else "left")
    for task in views:
        status_text = Text(task.status, style=COLORS.get(task.status, "cyan"))
        percent = str(task.progress_percent)
        table.add_row(task.id, status_text, percent, task.actor, task.created_at[:19], task.updated_at[:19])
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def cancel(
    envelope_id: EnvelopeId,
    *,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """Cancel a task with its children and its job runs. A task that has ended does not change."""
    mesh = client(state, namespace, region)
    mesh.cancel(envelope_id)
    task = mesh.task(envelope_id)
    typer.echo(task.status if task is not None else "canceled")
