"""Which tasks a command is about: their status, tool, actor, owner, error, age, and whether they are roots."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from asya.protocol.states import TaskStatus
from asya.protocol.times import format_time, parse_time
from asya.tasks.failures import failure_text
from asya.tasks.listing import TaskFilter
from asya_cli import clock
from asya_cli.errors import CommandError
from asya_cli.options import not_empty
from asya_cli.output.text import counted, echo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from asya.client.mesh_client import MeshClient
    from asya.tasks.view import TaskView

TASK_LIMIT = 20_000
"""The tasks that a command takes at most."""
CALL_LIMIT = 250
"""The pages that a command reads at most."""
_NARROW = "Select fewer with --since, --status or --parent."

P = TypeVar("P")


Actor = Annotated[
    str | None, typer.Option("--actor", help="Only tasks at this actor.", callback=not_empty, show_default=False)
]
Tool = Annotated[
    str | None, typer.Option("--tool", help="Only tasks of this tool.", callback=not_empty, show_default=False)
]
Owner = Annotated[
    str | None,
    typer.Option(
        "--owner",
        help="Only tasks of this principal, as `asya status` shows it; for operators.",
        callback=not_empty,
        show_default=False,
    ),
]
ErrorText = Annotated[
    str | None,
    typer.Option(
        "--error",
        help="Only tasks with this text in their error or reason.",
        callback=not_empty,
        show_default=False,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        help="Only tasks created since then: 90s, 30m, 2h, 7d, or a time such as 2026-11-24T22:00:00Z.",
        callback=not_empty,
        show_default=False,
    ),
]
Retrying = Annotated[bool, typer.Option("--retrying", help="Only running tasks that run again after an error.")]
Roots = Annotated[bool, typer.Option("--roots", help="Only tasks that no other task has fanned out into.")]

All = Annotated[
    bool, typer.Option("--all", help="Also failed tasks that are settled: replayed, dismissed or overtaken.")
]

_AGE = re.compile(r"(\d{1,9})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass
class Settled:
    """Counts the failed tasks that a selection leaves out, because they are settled or go on in a failed replay."""

    count: int = 0

    def tell(self, advice: str = "--all shows them") -> None:
        """Say on standard error how many there are, if there are any."""
        if self.count:
            verb = "is" if self.count == 1 else "are"
            echo(f"{counted(self.count, 'settled failure')} {verb} left out; {advice}", err=True)


@dataclass(frozen=True)
class Selection:
    """The tasks that a command is about.

    Attributes:
        wanted: The filters of the gateway's lists.
    """

    wanted: TaskFilter

    @classmethod
    def of(
        cls,
        *,
        status: TaskStatus | None = None,
        parent: str | None = None,
        actor: str | None = None,
        tool: str | None = None,
        owner: str | None = None,
        error: str | None = None,
        since: str | None = None,
        roots: bool = False,
        retrying: bool = False,
        resolved: bool = False,
        now: datetime | None = None,
    ) -> Selection:
        """Return the selection of these options; None means any.

        Raises:
            CommandError: `since` is neither an age nor a time.
        """
        earliest = None if since is None else format_time(moment(since, now or clock.now()))
        return cls(
            TaskFilter(
                status=status,
                parent=parent,
                actor=actor,
                tool=tool,
                owner=owner,
                error=error,
                since=earliest,
                roots=roots,
                retrying=retrying,
                resolved=resolved,
            )
        )

    def tasks(self, mesh: MeshClient, page_size: int = 100, settled: Settled | None = None) -> Iterator[TaskView]:
        """Read the selected tasks, newest first.

        Args:
            mesh: The mesh.
            page_size: The number of tasks of a call, 1 to 100.
            settled: Counts what a selection of open failures leaves out.

        Raises:
            CommandError: The gateway fails or does not answer, or there are more tasks or pages than the limits.
        """
        count = 0
        for page in limited(mesh.task_pages(self.wanted, page_size)):
            if settled is not None:
                settled.count += page.resolved
            for task in page.items:
                if count == TASK_LIMIT:
                    raise CommandError(f"more than {TASK_LIMIT:,} tasks are selected", _NARROW)
                count += 1
                yield task

    def check(self, mesh: MeshClient) -> None:
        """Check the actor of a selection without tasks: it may be misspelled.

        Raises:
            CommandError: The mesh has no such actor.
        """
        if self.wanted.actor:
            from asya_cli.aws_errors import check_actor

            check_actor(mesh.connection, self.wanted.actor)

    def newest(self, mesh: MeshClient, limit: int, settled: Settled | None = None) -> list[TaskView]:
        """Read the newest selected tasks; `settled` counts what was left out until then."""
        return list(islice(self.tasks(mesh, min(limit, 100), settled), limit))


def limited(pages: Iterable[P]) -> Iterator[P]:
    """Yield the pages of a list, as many as a command reads: those of a rare task are many and nearly empty.

    Raises:
        CommandError: There are more pages than the limit.
    """
    for number, page in enumerate(pages):
        if number == CALL_LIMIT:
            raise CommandError(f"the list is long: {CALL_LIMIT} pages were read, and there are more", _NARROW)
        yield page


def text_of(task: TaskView) -> str:
    """Return the error of a task, such as `KeyError: 'price'`; else its reason, or nothing."""
    return failure_text(task.status, task.error, task.reason)


def age(moment: str, now: datetime) -> str:
    """Return how long ago a time was, in its largest unit: `3m`, `2h`, `5d`."""
    try:
        seconds = max(0.0, (now - parse_time(moment)).total_seconds())
    except ValueError:
        return "?"
    for name, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f}{name}"
    return f"{seconds:.0f}s"


def moment(text: str, now: datetime) -> datetime:
    """Return the time of `--since`.

    Raises:
        CommandError: The text is neither an age nor a time.
    """
    match = _AGE.fullmatch(text)
    try:
        return now - timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else parse_time(text)
    except (ValueError, OverflowError):
        raise CommandError(
            f"--since {text} is neither an age nor a time",
            "Give an age such as 30m, 2h or 7d, or a time such as 2026-11-24T22:00:00Z.",
        ) from None
