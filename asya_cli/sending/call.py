"""`asya call`: calls a tool of the mesh."""

from __future__ import annotations

from typing import Annotated

import typer

from asya.client.errors import MeshError
from asya_cli.errors import CommandError, ExitCode, exit_code_of
from asya_cli.options import DEFAULT_MESH, MeshOptions, selects_mesh
from asya_cli.output.text import echo

_INVALID = "the gateway answered 400: "


@selects_mesh
def call(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="A tool of the mesh file.", show_default=False)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARGUMENTS",
            help="@FILE, - for standard input, JSON, or keys: flights=raw/flights.csv n=3. A value that is no JSON is text.",
            show_default=False,
        ),
    ] = None,
    *,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait for the end, and print the result.")] = False,
    selected: MeshOptions,
) -> None:
    """Call a tool: start a task on its whole route, and print the id of the task.

    The route is that of the mesh file, pauses included. With --wait the command prints the payload of the result; its exit code
    is 3 if the task failed or was canceled, and 4 if it waits for an answer.
    """
    from asya_cli.aws_errors import unknown_tool
    from asya_cli.sending.payload import read_payload
    from asya_cli.tasks.records import print_result

    content = read_payload(arguments or [], "an argument")
    mesh = selected.client()
    try:
        envelope_id = mesh.call_tool(tool, bytes(content))
    except MeshError as error:
        if exit_code_of(error) is ExitCode.NOT_FOUND:
            raise unknown_tool(mesh.connection.namespace, tool, DEFAULT_MESH) from None
        if error.problem.startswith(_INVALID):
            advice = f"Give the arguments of tools.{tool}.input_schema in the mesh file, such as KEY=VALUE."
            raise CommandError(error.problem.removeprefix(_INVALID), advice) from None
        raise
    if not wait:
        echo(envelope_id)
        return
    echo(f"task {envelope_id}", err=True)
    print_result(mesh, envelope_id, selected.as_typed())
