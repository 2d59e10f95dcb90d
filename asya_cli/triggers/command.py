"""`asya trigger`: lists, shows, pauses, resumes and fires the triggers of a mesh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.options import JsonDocument, JsonLines, MeshOptions, selects_mesh
from asya_cli.output.results import write, write_list, write_view
from asya_cli.output.text import one_line

if TYPE_CHECKING:
    from asya.client.triggers import Triggers

app = typer.Typer(no_args_is_help=True, help="List, show, pause, resume and fire triggers, which start tasks.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the trigger.", show_default=False)]


@app.command("list")
@selects_mesh
def list_triggers(
    *,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """List the triggers of a mesh with their last and next slots, in the time zone of each."""
    from asya_cli.triggers.tables import trigger_table

    views = triggers_of(selected).all()
    write_list(views, trigger_table, empty="no triggers", as_json=as_json)


@app.command()
@selects_mesh
def show(
    name: Name,
    *,
    as_json: JsonDocument = False,
    selected: MeshOptions,
) -> None:
    """Show a trigger: its slots in its time zone, and the newest tasks that it started."""
    from asya_cli.triggers.tables import show_trigger

    write_view(triggers_of(selected).one(name), show_trigger, as_json=as_json)


@app.command()
@selects_mesh
def pause(
    name: Name,
    *,
    as_json: JsonDocument = False,
    selected: MeshOptions,
) -> None:
    """Pause a trigger: it starts nothing by itself until `asya trigger resume`.

    Slots of the pause are left out. Objects, events and webhooks of the pause become dead letters of x-triggers, which
    `asya dlq redrive x-triggers` starts later.
    """
    view = triggers_of(selected).pause(name)
    again = f"`asya trigger resume {name}{selected.as_typed()}`"
    write(view, f"{one_line(name)} is paused; {again} lets it go on", as_json=as_json)


@app.command()
@selects_mesh
def resume(
    name: Name,
    *,
    as_json: JsonDocument = False,
    selected: MeshOptions,
) -> None:
    """Resume a paused trigger. Its next slot is the first one from now on."""
    from asya_cli.triggers.tables import local_time

    view = triggers_of(selected).resume(name)
    following = f"; its next slot is {local_time(view.next[0], view.timezone)}" if view.next else ""
    state_now = "goes on" if view.enabled else "is off, as the mesh file says"
    write(view, f"{one_line(name)} {state_now}{following}", as_json=as_json)


@app.command()
@selects_mesh
def fire(
    name: Name,
    *,
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="SLOT",
            help="The slot: a time, or a local time in the zone of the schedule such as 2026-11-25T02:00.",
            show_default=False,
        ),
    ] = "",
    as_json: JsonDocument = False,
    selected: MeshOptions,
) -> None:
    """Start the task of a schedule now, and print its id.

    With --at, the task is that of the slot, and each slot starts once. Without it, the payload has the values of
    now, and each call starts a task. A paused trigger may be fired.
    """
    from uuid import uuid4

    from asya.capabilities.triggers.operators.answers import Fired

    task_id = triggers_of(selected).fire(name, at or None, str(uuid4()))
    write(Fired(id=task_id), task_id, as_json=as_json)


def triggers_of(selected: MeshOptions) -> Triggers:
    """Connect to the triggers of the mesh that the options select.

    Raises:
        CommandError: There is no such mesh.
    """
    from asya.client.triggers import Triggers

    return Triggers(selected.client())
