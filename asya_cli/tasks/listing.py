"""`asya list`: lists tasks."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from asya_cli.options import DEFAULT_STATE, Namespace, Region, State, client
from asya_cli.output.text import echo, one_line, write_json

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
    from rich.table import Table
    from rich.text import Text

    from asya_cli.output.console import Console
    from asya_cli.tasks.report import COLORS

    views = client(state, namespace, region).tasks(status=status, parent=parent, limit=limit)
    if as_json:
        for task in views:
            write_json(msgspec.json.encode(task) + b"\n")
        return
    if not views:
        echo("no tasks", err=True)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("task", "status", "%", "actor", "created", "updated"):
        table.add_column(column, no_wrap=column == "task", justify="right" if column == "%" else "left")
    for task in views:
        status_text = Text(task.status, style=COLORS.get(task.status, "cyan"))
        percent = str(task.progress_percent)
        times = (one_line(each[:19]) for each in (task.created_at, task.updated_at))
        table.add_row(one_line(task.id), status_text, percent, one_line(task.actor or ""), *times)
    Console(width=None if sys.stdout.isatty() else 160, markup=False).print(table)
