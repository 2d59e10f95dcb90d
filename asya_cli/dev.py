"""`asya dev`: a mesh on this machine that follows the author's changes."""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from asya_cli.mesh_file.loading import check_exists
from asya_cli.options import DEFAULT_MESH, DEFAULT_STATE, MeshFile, Stage
from asya_cli.output.text import echo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from asya_cli.output.console import EventPrinter
    from asya_local.dev.running_mesh import RunningMesh

_CHECK_SECONDS = 1.0
_NOT_ENFORCED = (
    "Not enforced here: IAM of handlers, sizes of code and memory, concurrency. `asya local up` enforces IAM."
)


def dev(
    mesh: MeshFile = DEFAULT_MESH,
    state: Annotated[Path, typer.Option("--state", help="Folder for the files of this mesh.")] = DEFAULT_STATE,
    stage: Stage = "",
    secrets: Annotated[
        Path | None,
        typer.Option("--secrets", help="File with the values of secrets; by default secrets.env in the state folder."),
    ] = None,
) -> None:
    """Run a mesh on this machine until Ctrl-C, and load its code again at each change.

    The queues, the tables and the gateway are those of an emulator, so every command of `asya` works with the mesh. Handlers and
    jobs find the packages that they have on AWS. What they print, and the tracebacks of failed ones, appear at once.
    """
    from asya_cli.output.console import Console, EventPrinter
    from asya_infra.build.packages import PackagesError
    from asya_local.dev.startup import DevOptions, running
    from asya_local.errors import LocalCloudError
    from asya_local.steps import Step, Steps

    check_exists(mesh)
    for number in (signal.SIGTERM, signal.SIGHUP):  # a terminal that is closed ends the mesh, too
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` asks
            signal.signal(number, _leave)
    console = Console(highlight=False)
    printer = EventPrinter(console)
    options = DevOptions(mesh, state, stage, secrets)

    def print_step(step: Step) -> None:
        console.print(f"  [green]✔[/] {step.name:<16}{step.seconds:6.1f} s")

    try:
        with suppress(KeyboardInterrupt), running(options, printer.tell, Steps(print_step)) as started:
            connection = started.connection()
            console.print(f"\n[bold]{connection.namespace}[/] takes messages. Every command of `asya` works with it.")
            console.print(f"Gateway, MCP and A2A: {connection.gateway_url} (its key is in {state / 'local.json'})")
            console.print(
                f"[dim]{_NOT_ENFORCED}[/]\n[dim]Ctrl-C ends the mesh; its messages and results go with it.[/]\n"
            )
            for note in started.notes:
                echo(f"note: {note}", err=True)
            try:
                _follow(started, mesh, stage, printer)
            except KeyboardInterrupt:
                echo("ending the mesh", err=True)
                raise
    except PackagesError as error:
        raise LocalCloudError(str(error)) from error


def _follow(started: RunningMesh, mesh: Path, stage: str, printer: EventPrinter) -> NoReturn:
    """Load each change, until Ctrl-C; a mistake in a file is printed, and what runs goes on."""
    from asya_local.dev.running_mesh import ServerEndedError
    from asya_local.errors import LocalCloudError
    from asya_local.sources import load
    from asya_local.watching import identities, watching, with_linked_folders

    last = ""

    @contextmanager
    def telling(effect: str = "") -> Iterator[None]:
        """Print a mistake with its effect, unless it is the one that was printed last."""
        nonlocal last
        try:
            yield
        except ServerEndedError:
            raise
        except (LocalCloudError, OSError) as error:
            if str(error) != last:
                last = str(error)
                printer.tell("error", last + effect)

    while True:
        folders = with_linked_folders(started.folders)
        watched = identities(folders)
        with watching(mesh, started.folders) as wait:
            # A change may bring a link to a folder that nobody watches yet.
            while folders == with_linked_folders(started.folders) and watched == identities(folders):
                had_mistake, last = bool(last), ""
                with telling("\nThe mesh goes on as it was before."), printer.measured() as changed:
                    changed.extend(started.follow(load(mesh, stage)))
                if had_mistake and not (last or changed):
                    printer.tell("news", "the mistake is gone; the mesh is that of the files")
                while not wait(_CHECK_SECONDS) and watched == identities(folders):
                    with telling():
                        started.check()


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
