"""`asya ui`: the console in the browser."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from asya_cli.errors import CommandError
from asya_cli.options import MeshOptions, selects_mesh
from asya_cli.output.text import echo

if TYPE_CHECKING:
    import socket
    from types import FrameType

_SECRET_BYTES = 32


@selects_mesh
def ui(
    *,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address of the page instead of opening the browser.")
    ] = False,
    selected: MeshOptions,
) -> None:
    """Show the tasks of a mesh in the browser, until Ctrl-C: what failed and why, with cancel, answer, replay and redrive.

    The page comes from a server on 127.0.0.1, which calls the gateway with your AWS credentials. Its address holds a secret: give
    it to nobody.
    """
    # Late imports: the server would slow down `asya --help`.
    import secrets
    from importlib.metadata import version

    from asya_cli.console.gateway import Gateway
    from asya_cli.console.guard import Guard
    from asya_cli.console.page import page_address, page_folder, read_page, redirect_file
    from asya_cli.console.redrives import Redrives
    from asya_cli.console.server import Console, MeshInfo, make_server

    mesh = selected.client()
    connection = mesh.connection
    page = read_page(page_folder())
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    info = MeshInfo(
        namespace=connection.namespace,
        region=connection.region,
        is_local=connection.endpoint_url is not None,
        options=selected.as_typed(),
        version=version("asya-mesh"),
    )
    for number in (signal.SIGTERM, signal.SIGHUP):  # the file with the secret goes with the terminal, too
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` asks
            signal.signal(number, _leave)
    with _listening(port) as listener, suppress(KeyboardInterrupt):
        own_port: int = listener.getsockname()[1]
        console = Console(Guard(own_port, secret), page, info, Gateway(connection), Redrives(mesh))
        address = page_address(own_port, secret)
        with redirect_file(address) as file:
            if no_browser:
                echo(address)
            else:
                _open_browser(file.as_uri())
            echo(f"the console of {connection.namespace} runs until Ctrl-C", err=True)
            make_server(console).run(sockets=[listener])


def _listening(port: int) -> socket.socket:
    """Return a socket that listens on loopback.

    Raises:
        CommandError: The port is taken.
    """
    import socket

    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise CommandError(f"port {port} cannot be used: {error.strerror}", "Give another --port, or none.") from error


def _open_browser(address: str) -> None:
    import webbrowser

    if webbrowser.open(address):
        echo(f"opening {address}", err=True)
    else:
        echo(f"no browser was found; open {address}, or type `asya ui --no-browser`", err=True)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
