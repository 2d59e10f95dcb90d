"""Which tasks a command is about: their status, actor, error, age, and whether they are roots."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from asya.protocol.times import format_time, parse_time
from asya_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.client.mesh_client import MeshClient
    from asya.tasks.view import TaskView

READ_LIMIT = 20_000
"""The tasks that a command reads at most."""

Status = Literal["pending", "running", "paused", "succeeded", "failed", "canceled"]

Actor = Annotated[str, typer.Option("--actor", help="Only tasks at this actor.", show_default=False)]
ErrorText = Annotated[
    str, typer.Option("--error", help="Only tasks with this text in their error or reason.", show_default=False)
]
Since = Annotated[
    str,
    typer.Option(
        "--since",
        help="Only tasks created since then: 90s, 30m, 2h, 7d, or a time such as 2026-11-24T22:00:00Z.",
        show_default=False,
    ),
]
Roots = Annotated[bool, typer.Option("--roots", help="Only tasks that no other task has fanned out into.")]

_UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(\.\d+)*")
_AGE = re.compile(r"(\d{1,9})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class Selection:
    """The tasks that a command is about; an empty text means any.

    Attributes:
        since: The earliest creation, as records have it.
    """

    status: Status | None = None
    parent: str | None = None
    actor: str = ""
    error: str = ""
    since: str = ""
    roots: bool = False

    @classmethod
    def of(  # noqa: PLR0917 - the options of a command
        cls,
        status: Status | None = None,
        parent: str | None = None,
        actor: str = "",
        error: str = "",
        since: str = "",
        roots: bool = False,
        *,
        now: datetime | None = None,
    ) -> Selection:
        """Return the selection of these options.

        Raises:
            CommandError: `since` is neither an age nor a time.
        """
        earliest = format_time(moment(since, now or datetime.now(UTC))) if since else ""
        return cls(status, parent, actor, error, earliest, roots)

    def __contains__(self, task: TaskView) -> bool:
        """Return whether a task of the list is selected."""
        return (
            self.actor in ("", task.actor)
            and (not self.error or any(self.error in text for text in _searched(task)))
            and not (self.roots and task.parent_id)
        )

    def tasks(self, mesh: MeshClient, page_size: int = 100) -> Iterator[TaskView]:
        """Read the selected tasks, newest first.

        Args:
            mesh: The mesh.
            page_size: The number of tasks of a call, 1 to 100.

        Raises:
            CommandError: The gateway fails or does not answer, or more tasks would have to be read than the limit.
        """
        for count, task in enumerate(mesh.iter_tasks(status=self.status, parent=self.parent, page_size=page_size)):
            if self.since and task.created_at < self.since:
                return  # the list is sorted by creation
            if count == READ_LIMIT:
                raise CommandError(
                    f"{READ_LIMIT:,} tasks were read, and there are more",
                    "Select fewer with --since, --status or --parent.",
                )
            if task in self:
                yield task

    def check(self, mesh: MeshClient) -> None:
        """Check the actor of a selection without tasks: it may be misspelled.

        Raises:
            CommandError: The mesh has no such actor.
        """
        if self.actor:
            from asya_cli.suggestions import check_actor

            check_actor(mesh.connection, self.actor)

    def newest(self, mesh: MeshClient, limit: int) -> list[TaskView]:
        """Read the newest selected tasks."""
        is_whole = self == Selection(self.status, self.parent)
        return list(islice(self.tasks(mesh, min(limit, 100) if is_whole else 100), limit))


def failure_text(task: TaskView) -> str:
    """Return the error of a task, such as `KeyError: 'price'`; else its reason, or nothing."""
    if task.error is not None:
        return f"{task.error.type}: {task.error.message}"
    return (task.reason or "") if task.status in ("failed", "canceled") else ""


def kind_of(text: str) -> str:
    """Return the first line of an error without what differs between tasks of one cause: numbers and UUIDs are `#`."""
    return _NUMBER.sub("#", _UUID.sub("#", text.partition("\n")[0]))


def _searched(task: TaskView) -> tuple[str, ...]:
    """Return what `--error` looks for: the error, the reason, and the error as `asya failures` groups it."""
    text = failure_text(task)
    return (text, task.reason or "", kind_of(text))


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
