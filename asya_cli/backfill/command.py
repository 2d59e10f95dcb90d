"""`asya backfill`: starts the slots of a schedule between two times."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from asya.client.errors import MeshError
from asya_cli.options import JsonDocument, JsonLines, MeshOptions, completed, selects_mesh
from asya_cli.output.results import write, write_list, write_view
from asya_cli.output.text import counted, echo, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

Follow = Annotated[bool, typer.Option("--follow", "-f", help="Show the progress until the backfill ends.")]


@selects_mesh
def start(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The trigger with the schedule.", show_default=False)],
    *,
    from_: Annotated[
        str,
        typer.Option("--from", metavar="DAY", help="The first day in the zone of the schedule, or a time."),
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="DAY", help="The last day in the zone of the schedule, or a time.")
    ],
    at_once: Annotated[int, typer.Option("--at-once", min=1, max=100, help="How many tasks run at a time.")] = 1,
    stop_after: Annotated[
        int | None,
        typer.Option(
            "--stop-after", metavar="N", min=1, help="Start nothing more after N failures.", show_default=False
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also start slots that were started before.")] = False,
    hold_paused: Annotated[
        bool, typer.Option("--hold-paused", help="A paused task keeps its place, so that no further one starts.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the slots.")] = False,
    follow: Follow = False,
    as_json: JsonDocument = False,
    selected: MeshOptions,
) -> None:
    """Start the slots of a schedule between two days, oldest first, and print the id of the backfill.

    The mesh does it: this command and the terminal may end. A slot that was started before counts as done. With --follow,
    the exit code is 3 if a slot failed, or the backfill was stopped or canceled.
    """
    from uuid import uuid4

    from asya.capabilities.triggers.operators.answers import BackfillRequest
    from asya_cli.backfill.display import exit_code, show_backfill
    from asya_cli.backfill.display import follow as follow_backfill
    from asya_cli.triggers.command import triggers_of
    from asya_cli.triggers.tables import local_time

    triggers = triggers_of(selected)
    request = BackfillRequest(
        trigger=name,
        from_=from_,
        to=to,
        at_once=at_once,
        stop_after=stop_after,
        again=again,
        hold_paused=hold_paused,
        dry_run=dry_run,
    )
    view = triggers.begin(request, str(uuid4()))
    if dry_run:
        first, until = local_time(view.first, view.timezone), local_time(view.until, view.timezone)
        text = f"{counted(view.total, 'slot')} from {first} to {until}; nothing was started"
        write(view, text, as_json=as_json)
        return
    options = selected.as_typed()
    if not follow:
        write(view, view.id, as_json=as_json)
        if not as_json:
            slots = counted(view.total, "slot")
            echo(f"{slots}; `asya backfill show {view.id} --follow{options}` shows them", err=True)
        return
    view = follow_backfill(triggers, view.id, options)
    write_view(view, show_backfill, as_json=as_json)
    raise typer.Exit(exit_code(view))


_START = "start"


class _StartsByDefault(TyperGroup):
    """`asya backfill nightly …` is short for `asya backfill start nightly …`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Put `start` before the name of a trigger."""
        is_trigger = bool(args) and not args[0].startswith("-") and args[0] not in self.commands
        return super().resolve_command(ctx, [_START, *args] if is_trigger else args)


app = typer.Typer(
    cls=_StartsByDefault,
    no_args_is_help=True,
    help="Start the slots of a schedule between two times: `asya backfill NAME --from DAY --to DAY`.",
)
app.command(_START)(start)

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of the backfill.", show_default=False)]


@app.command("list")
@selects_mesh
def list_backfills(
    *,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """List the backfills of a mesh, the newest first."""
    from asya_cli.backfill.display import backfill_table
    from asya_cli.triggers.command import triggers_of

    views = triggers_of(selected).backfills()
    write_list(views, backfill_table, empty="no backfills", as_json=as_json)


@app.command()
@selects_mesh
def show(
    backfill_id: Id,
    *,
    follow: Follow = False,
    as_json: JsonDocument = False,
    selected: MeshOptions,
) -> None:
    """Show a backfill: its progress, its running tasks, and its newest failures.

    With --follow, the exit code is 3 if a slot failed, or the backfill was stopped or canceled.
    """
    from asya_cli.backfill.display import exit_code, show_backfill
    from asya_cli.backfill.display import follow as follow_backfill
    from asya_cli.triggers.command import triggers_of

    triggers = triggers_of(selected)
    options = selected.as_typed()
    with _naming_mesh(options):
        view = follow_backfill(triggers, backfill_id, options) if follow else triggers.backfill(backfill_id)
    write_view(view, show_backfill, as_json=as_json)
    if follow:
        raise typer.Exit(exit_code(view))


@app.command()
@selects_mesh
def resume(
    backfill_id: Id,
    *,
    as_json: JsonDocument = False,
    selected: MeshOptions,
) -> None:
    """Let a backfill go on that --stop-after has stopped. As many failures are allowed again."""
    from asya_cli.triggers.command import triggers_of

    with _naming_mesh(selected.as_typed()):
        view = triggers_of(selected).resume_backfill(backfill_id)
    write(view, f"{one_line(view.id)}: {view.state}", as_json=as_json)


@app.command()
@selects_mesh
def cancel(
    backfill_id: Id,
    *,
    as_json: JsonDocument = False,
    selected: MeshOptions,
) -> None:
    """Cancel a backfill: it starts nothing any more, and its running tasks are canceled. A second call cancels the rest."""
    from asya_cli.triggers.command import triggers_of

    with _naming_mesh(selected.as_typed()):
        view = triggers_of(selected).cancel_backfill(backfill_id)
    write(view, f"{one_line(view.id)}: {view.state}", as_json=as_json)


@contextmanager
def _naming_mesh(options: str) -> Iterator[None]:
    """Add the options that select the mesh to the commands in the errors of its client."""
    try:
        yield
    except MeshError as error:
        error.advice = completed(error.advice, options)
        raise
