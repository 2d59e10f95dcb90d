"""`asya local`: starts, stops and checks a local cloud. `asya local time` starts what schedules start later."""

from __future__ import annotations

import os
import re
import signal
from datetime import timedelta
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from asya_cli import clock
from asya_cli.errors import CommandError, ExitCode
from asya_cli.mesh_file.loading import check_exists
from asya_cli.options import DEFAULT_MESH, DEFAULT_STATE, JsonLines, MeshFile, MeshOptions, Stage
from asya_cli.output.results import write
from asya_cli.output.text import counted, echo, one_line, without_fraction, write_json_line

if TYPE_CHECKING:
    from types import FrameType

    from asya_local.steps import Step

_SPAN = re.compile(r"\+?(\d{1,6})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def time(
    span: Annotated[
        str, typer.Argument(metavar="SPAN", help="How far from now: +90m, +12h or +1d.", show_default=False)
    ],
    state: Annotated[Path, typer.Option("--state", help="Folder for the files of this local cloud.")] = DEFAULT_STATE,
    *,
    as_json: JsonLines = False,
) -> None:
    """Start the tasks of all slots up to a later time, in their order, and print them. It moves no clock.

    A mesh of `asya dev` has this too. The slots count as decided: they do not start again at their time.
    """
    from asya.client.triggers import Triggers

    match = _SPAN.fullmatch(span.strip())
    if match is None:
        raise CommandError(f"{span!r} is no span of time", "Type +90m, +12h or +1d.")
    until = clock.now() + timedelta(**{_UNITS[match[2]]: int(match[1])})
    count = 0
    for slot in Triggers(MeshOptions(state).client()).decide(until):
        count += 1
        write(slot, f"{without_fraction(slot.at)}  {one_line(slot.trigger)}  {slot.id}", as_json=as_json)
    echo(counted(count, "slot"), err=True)


app = typer.Typer(no_args_is_help=True, help="Deploy the CDK stacks of a mesh to a local cloud on this machine.")

State = Annotated[Path, typer.Option("--state", help="Folder for the files of this local cloud.")]


@app.command()
def up(
    mesh: MeshFile = DEFAULT_MESH,
    state: State = DEFAULT_STATE,
    stage: Stage = "",
    secrets: Annotated[
        Path | None,
        typer.Option("--secrets", help="File with the values of secrets; by default secrets.env in the state folder."),
    ] = None,
) -> None:
    """Start a local cloud with a mesh, or bring a running one up to date. Returns when the mesh takes messages."""
    from asya_cli.output.console import Console
    from asya_infra.mesh_file import load_mesh, to_table
    from asya_infra.notes import code_notes
    from asya_local.cloud import UpOptions
    from asya_local.cloud import up as start_cloud
    from asya_local.emr.local_spark import unheeded_notes
    from asya_local.steps import Steps
    from asya_local.tools import machine_memory_mb

    check_exists(mesh)
    signal.signal(signal.SIGTERM, _leave)
    console = Console(highlight=False)

    def print_step(step: Step) -> None:
        console.print(f"  [green]✔[/] {step.name:<16}{step.seconds:6.1f} s")

    with console.status("starting the local cloud"):
        connection = start_cloud(mesh, state, UpOptions(stage=stage, secrets=secrets), Steps(print_step))
    loaded = load_mesh(mesh, stage)
    for note in (*code_notes(loaded), *unheeded_notes(to_table(loaded).actors, machine_memory_mb())):
        echo(f"note: {note}", err=True)
    console.print(f"\n[bold]{connection.namespace}[/] takes messages. Its endpoints and keys: {state / 'local.json'}")


@app.command()
def down(state: State = DEFAULT_STATE) -> None:
    """Stop all processes of a local cloud, also after a crash. Its logs stay in the state folder."""
    from asya_local.cloud import down as stop_cloud

    count = stop_cloud(state)
    echo(f"{count} processes ended." if count else f"No process of {state} was running.")


@app.command()
def status(state: State = DEFAULT_STATE, *, as_json: JsonLines = False) -> None:
    """Show the processes of a local cloud. Exit code 0 if all of them are up."""
    from rich.table import Table
    from rich.text import Text

    from asya_cli.output.console import table_console
    from asya_local.health import check_health

    parts = check_health(state)
    table = Table("", "", "process", "", box=None, pad_edge=False)
    for part in parts:
        if as_json:
            write_json_line(part)
        mark = Text("up", "green") if part.up else Text("down", "red")
        table.add_row(part.name, mark, str(part.pid or ""), "  ".join(filter(None, (part.url, part.note))))
    if not as_json:
        table_console().print(table)
    raise typer.Exit(0 if all(part.up for part in parts) else 1)


app.command()(time)


@app.command()
def env(state: State = DEFAULT_STATE) -> None:
    """Print the shell commands that let AWS's tools and your programs use a local cloud: eval "$(asya local env)".

    They set its endpoints and the operator's key. A mesh of `asya dev` has them too.
    """
    from asya_local.servers import unproxied
    from asya_local.state_folder import LocalConnection, StateFolder

    connection = LocalConnection.read(StateFolder.at(state).connection)
    if connection is None:
        raise CommandError(
            f"no local cloud runs in {state}", "Start one with `asya local up` or `asya dev`.", ExitCode.UNREACHABLE
        )
    echo("unset AWS_PROFILE AWS_SESSION_TOKEN")
    for name, value in {**connection.environment(), **unproxied(os.environ)}.items():
        echo(f"export {name}={quote(value)}")


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
