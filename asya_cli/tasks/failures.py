"""`asya failures`: groups tasks that failed, or that run again, by actor and error."""

from __future__ import annotations

from itertools import chain
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli import clock
from asya_cli.options import JsonLines, MeshOptions, selects_mesh
from asya_cli.output.text import counted, echo, one_line, write_json_line
from asya_cli.tasks.selection import Actor, All, ErrorText, Owner, Selection, Settled, Since, Tool, age, limited

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.table import Table

    from asya.tasks.failures import FailureGroup


@selects_mesh
def failures(
    *,
    actor: Actor = None,
    tool: Tool = None,
    owner: Owner = None,
    error: ErrorText = None,
    since: Since = None,
    retrying: Annotated[
        bool, typer.Option("--retrying", help="Group running tasks by the error after which they run again.")
    ] = False,
    show_all: All = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of groups.")] = 20,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """Group open failures by actor and error, most tasks first.

    A failed task that was replayed, dismissed or overtaken is settled, unless its replay has failed too.

    `asya replay --failed --actor ACTOR --error TEXT` runs a group again, with the text as it is shown here.
    """
    from asya.client.operations import Operations
    from asya.tasks.failures import merged
    from asya_cli.output.console import table_console

    selection = Selection.of(
        actor=actor, tool=tool, owner=owner, error=error, since=since, retrying=retrying, resolved=show_all
    )
    mesh = selected.client()
    pages = Operations(mesh).failure_pages(selection.wanted)
    read = list(limited(pages))
    groups = merged(chain.from_iterable(page.items for page in read))
    settled = Settled(sum(page.resolved for page in read))
    if not groups:
        selection.check(mesh)
    more = (
        f"and {counted(len(groups) - limit, 'group')} more; -n {len(groups)} shows them" if len(groups) > limit else ""
    )
    settled.tell()
    if as_json:
        for each in groups[:limit]:
            write_json_line(each)
        if more:
            echo(more, err=True)
        return
    if not groups:
        failures_of = "no open failures" if settled.count else "no failed tasks"
        echo("no tasks that run again after an error" if retrying else failures_of, err=True)
        return
    console = table_console()
    console.print(_table_of(groups[:limit], clock.now(), console.width))
    if more:
        echo(more, err=True)
    options = selected.as_typed()
    if retrying:
        echo(f"Show the first: asya list --retrying{_selected(groups[0])}{options}", err=True)
        return
    echo(f"Show the first: {_command(groups[0])} --dry-run{options}; without --dry-run it runs again", err=True)


def _table_of(groups: Sequence[FailureGroup], now: datetime, width: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    from asya_cli.output.console import WHOLE_IDS

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("tasks", justify="right")
    table.add_column("actor", overflow="fold")
    table.add_column("error", overflow="fold", ratio=1)
    table.add_column("first", justify="right")
    table.add_column("last", justify="right")
    table.add_column("example", overflow="fold", no_wrap=width >= WHOLE_IDS)
    for each in groups:
        texts = (each.actor, each.error, age(each.first, now), age(each.last, now), each.example)
        table.add_row(str(each.count), *(Text(one_line(text)) for text in texts))
    return table


def _command(group: FailureGroup) -> str:
    """Return the command that runs the tasks of a group again."""
    return f"asya replay --failed{_selected(group)}"


def _selected(group: FailureGroup) -> str:
    """Return the options that select the tasks of a group."""
    error = one_line(group.error)
    actor = f" --actor {quote(group.actor)}" if group.actor else ""
    return actor + (f" --error {readable_quote(error)}" if error else "")


def readable_quote(text: str) -> str:
    """Quote an argument for a shell; in double quotes, where no character needs an escape, because errors have single ones."""
    return quote(text) if any(character in text for character in '"$`\\!') else f'"{text}"'
