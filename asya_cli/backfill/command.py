"""`asya backfill`: starts the slots of a schedule between two times."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from asya.client.errors import MeshError
from asya_cli.backfill.start import Follow, start
from asya_cli.options import JsonDocument, JsonLines, MeshOptions, completed, selects_mesh
from asya_cli.output.results import write, write_list, write_view
from asya_cli.output.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    from asya_cli.backfill.tables import backfill_table
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
    from asya_cli.backfill.progress import exit_code
    from asya_cli.backfill.progress import follow as follow_backfill
    from asya_cli.backfill.tables import show_backfill
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
