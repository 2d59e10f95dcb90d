"""`asya list`: lists tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asya.protocol.states import TaskStatus
from asya_cli import clock
from asya_cli.options import MeshOptions, selects_mesh
from asya_cli.output.results import write_list
from asya_cli.output.text import echo, one_line, without_fraction
from asya_cli.tasks.selection import (
    Actor,
    All,
    ErrorText,
    Owner,
    Retrying,
    Roots,
    Selection,
    Settled,
    Since,
    Tool,
    age,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.table import Table

    from asya.tasks.view import TaskView

_COLUMNS = ("task", "status", "%", "age", "actor")
_GAP = 1
_MOST = 10_000
"""Tasks that a list shows at most."""
_SMALLEST_ERROR = 12
"""Columns below which an error tells nothing."""


@selects_mesh
def list_tasks(
    *,
    status: Annotated[TaskStatus | None, typer.Option("--status", help="Only tasks with this status.")] = None,
    actor: Actor = None,
    tool: Tool = None,
    owner: Owner = None,
    error: ErrorText = None,
    since: Since = None,
    roots: Roots = False,
    retrying: Retrying = False,
    show_all: All = False,
    parent: Annotated[str | None, typer.Option("--parent", metavar="ID", help="Only children of this task.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=_MOST, help="Maximum number of tasks.")] = 20,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line, as the gateway answers.")
    ] = False,
    selected: MeshOptions,
) -> None:
    """List tasks, newest first: your own, or all tasks if you are an operator."""
    from asya_cli.output.console import table_console

    selection = Selection.of(
        status=status,
        parent=parent,
        actor=actor,
        tool=tool,
        owner=owner,
        error=error,
        since=since,
        roots=roots,
        retrying=retrying,
        resolved=show_all,
    )
    mesh = selected.client()
    settled = Settled()
    views = selection.newest(mesh, limit, settled)
    if not views:
        selection.check(mesh)
    now, width = clock.now(), table_console().width
    write_list(views, lambda tasks: table_of(tasks, now, width), empty="no tasks", as_json=as_json)
    settled.tell()
    more = min(limit * 10, _MOST)
    if len(views) == limit < more:  # whether there are more may take many calls to know
        echo(f"the newest {limit}; -n {more} shows up to {more:,}", err=True)


def table_of(tasks: Sequence[TaskView], now: datetime, width: int) -> Table:
    """Return a table with one line for each task; errors are cut, and left out where there is no room.

    A column shows until when tasks wait, if any of them does.
    """
    from rich.table import Table
    from rich.text import Text

    from asya_cli.output.console import WHOLE_IDS
    from asya_cli.tasks.report import COLORS

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
    names = (*_COLUMNS, *(["waits until"] if any(task.waiting_until for task in tasks) else []))
    rows = [
        (
            *(task.id, task.status, str(task.progress_percent), age(task.created_at, now), task.actor or ""),
            *([] if len(names) == len(_COLUMNS) else [without_fraction(task.waiting_until or "")]),
        )
        for task in tasks
    ]
    lines = [tuple(map(one_line, row)) for row in rows]
    used = sum(max(map(len, column)) + _GAP for column in zip(names, *lines, strict=True))
    for name in names:
        table.add_column(
            name,
            no_wrap=name != "actor" and width >= WHOLE_IDS,
            overflow="fold",
            justify="right" if name in ("%", "age") else "left",
        )
    errors = [one_line(_why(task).partition("\n")[0]) for task in tasks]
    room = width - used
    is_shown = room >= _SMALLEST_ERROR and any(errors)
    if is_shown:
        table.add_column("error", no_wrap=True, overflow="ellipsis", max_width=room)
    for task, (name, status, *others), error in zip(tasks, lines, errors, strict=True):
        cells = [Text(name), Text(status, style=COLORS.get(task.status, "cyan")), *map(Text, others)]
        table.add_row(*cells, *([Text(error)] if is_shown else []))
    return table


def _why(task: TaskView) -> str:
    """Return the error of a task, who canceled it, what keeps it on its queue, or after which error it runs again."""
    from asya_cli.tasks.report import cancellation_line, retry_line

    if task.problem is not None:
        return f"{task.problem.type}: {task.problem.message}"
    if task.retry is not None:
        return retry_line(task.retry)
    if task.canceled is not None and task.error is None:
        return f"{task.reason or 'Canceled'} {cancellation_line(task.canceled)}"
    return text_of(task)
