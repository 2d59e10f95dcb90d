"""`asya failures`: groups failed tasks by actor and error."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.options import DEFAULT_STATE, Namespace, Profile, Region, State, client
from asya_cli.output.text import counted, echo, one_line, write_json
from asya_cli.tasks.selection import Actor, ErrorText, Selection, Since, age, failure_text, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asya.tasks.view import TaskView


@dataclass(frozen=True)
class FailureGroup:
    """Tasks that failed at one actor with the same error.

    Attributes:
        actor: The actor at which they failed.
        error: The first line of their error, with numbers and UUIDs as `#`.
        count: The number of tasks.
        first, last: When the first and the last of them were created.
        example: The id of the last one.
    """

    actor: str
    error: str
    count: int
    first: str
    last: str
    example: str


def failures(
    *,
    actor: Actor = "",
    error: ErrorText = "",
    since: Since = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of groups.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """Group failed tasks by actor and error, most tasks first.

    `asya replay --failed --actor ACTOR --error TEXT` runs a group again, with the text as it is shown here.
    """
    import msgspec
    from rich.table import Table
    from rich.text import Text

    from asya_cli.output.console import table_console

    selection = Selection.of("failed", None, actor, error, since)
    mesh = client(state, namespace, region, profile)
    groups = group(selection.tasks(mesh))
    if not groups:
        selection.check(mesh)
    if as_json:
        for each in groups[:limit]:
            write_json(msgspec.json.encode(each) + b"\n")
        return
    if not groups:
        echo("no failed tasks", err=True)
        return
    now = datetime.now(UTC)
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("tasks", justify="right")
    table.add_column("actor", overflow="fold")
    table.add_column("error", overflow="fold", ratio=1)
    table.add_column("first", justify="right")
    table.add_column("last", justify="right")
    table.add_column("example", no_wrap=True)
    for each in groups[:limit]:
        texts = (each.actor, each.error, age(each.first, now), age(each.last, now), each.example)
        table.add_row(str(each.count), *(Text(one_line(text)) for text in texts))
    table_console().print(table)
    if len(groups) > limit:
        echo(f"and {counted(len(groups) - limit, 'group')} more; -n shows them", err=True)


def group(tasks: Iterable[TaskView]) -> list[FailureGroup]:
    """Group tasks by actor and error, most tasks first.

    Args:
        tasks: Failed tasks, newest first.
    """
    members: dict[tuple[str, str], list[TaskView]] = {}
    for task in tasks:
        members.setdefault((task.actor or "", kind_of(failure_text(task))), []).append(task)
    groups = [
        FailureGroup(actor, error, len(each), each[-1].created_at, each[0].created_at, each[0].id)
        for (actor, error), each in members.items()
    ]
    return sorted(groups, key=lambda each: each.count, reverse=True)
