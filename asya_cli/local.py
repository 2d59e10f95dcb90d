"""`asya local`: a mesh on this machine."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from asya_cli.options import DEFAULT_STATE

if TYPE_CHECKING:
    from types import FrameType

    from asya_local.steps import Step

app = typer.Typer(no_args_is_help=True, help="The local cloud: the mesh's own CDK stacks, deployed on this machine.")

State = Annotated[Path, typer.Option("--state", help="Folder for everything of this local cloud.")]


@app.command()
def up(
    mesh: Annotated[Path, typer.Option("--mesh", help="The mesh file.")] = Path("mesh.yaml"),
    state: State = DEFAULT_STATE,
    auth: Annotated[bool, typer.Option("--auth", help="Enforce IAM, as AWS does.")] = False,
) -> None:
    """Bring a local cloud up with a mesh, or deploy the mesh anew; returns when messages are being taken."""
    from rich.console import Console

    from asya_local.cloud import UpOptions
    from asya_local.cloud import up as bring_up
    from asya_local.steps import Steps

    console = Console(highlight=False)

    def tell(step: Step) -> None:
        console.print(f"  [green]✔[/] {step.name:<16}{step.seconds:6.1f} s")

    signal.signal(signal.SIGTERM, _leave)
    with console.status("bringing the local cloud up"):
        connection = bring_up(mesh, state, UpOptions(auth=auth), Steps(tell))
    console.print(f"\n[bold]{connection.namespace}[/] takes messages; how to talk to it: {state / 'local.json'}")


@app.command()
def down(state: State = DEFAULT_STATE) -> None:
    """Take a local cloud down, also one that crashed. Its logs stay in the state folder."""
    from asya_local.cloud import down as take_down

    count = take_down(state)
    typer.echo(f"{count} processes ended." if count else f"Nothing of {state} was running.")


@app.command()
def status(state: State = DEFAULT_STATE) -> None:
    """Say how a local cloud is; exit code 0 if all of it is up."""
    from rich.console import Console
    from rich.table import Table

    from asya_local.health import check_health

    parts = check_health(state)
    table = Table("", "", "process", "", box=None)
    for part in parts:
        mark = "[green]up[/]" if part.up else "[red]down[/]"
        table.add_row(part.name, mark, str(part.pid or ""), "  ".join(filter(None, (part.where, part.note))))
    Console(highlight=False, soft_wrap=True).print(table)
    raise typer.Exit(0 if all(part.up for part in parts) else 1)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
