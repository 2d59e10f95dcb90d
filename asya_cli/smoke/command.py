"""The command line of `asya smoke`."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.json_input import read_bytes
from asya_cli.mesh_file.loading import load
from asya_cli.options import DEFAULT_MESH, JsonLines, MeshOptions, selects_mesh
from asya_cli.output.text import echo, styled, visible, write_json_line
from asya_cli.tasks.bulk import leaving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya_cli.smoke.steps import Smoke, Step

_COLORS = {"ok": "green", "skipped": "yellow", "failed": "red"}


@selects_mesh
def smoke(
    *,
    mesh: Annotated[
        Path | None, typer.Option("--mesh", help="Test the mesh of this file on AWS.", show_default=False)
    ] = None,
    stage: Annotated[
        str | None, typer.Option("--stage", help="Test this stage on AWS; --mesh is mesh.yaml by default.")
    ] = None,
    tool: Annotated[str | None, typer.Option("--tool", help="Also call this tool, which runs your own actors.")] = None,
    arguments: Annotated[
        Path | None, typer.Option("--arguments", help="With --tool: a JSON file with its arguments; {} by default.")
    ] = None,
    alarms: Annotated[bool, typer.Option("--alarms", help="Also send a test message to each alarm topic.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", help="How many minutes a job run or a tool may take.")] = 20.0,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """Send test envelopes through a deployed mesh: one light, one job run, and optionally a tool of yours.

    Without --tool no user code runs: x-checkpoint takes the light envelope, and x-index the heavy one.

    Exit code 1 if a step fails.
    """
    from asya.heavy.job_python import pins_python
    from asya_cli.smoke.steps import Smoke

    if arguments is not None and tool is None:
        raise CommandError("--arguments needs --tool", "Name the tool that gets them with --tool.")
    body = read_bytes(str(arguments)) if arguments is not None else b"{}"
    is_python_pinned = False
    if mesh is not None or stage is not None:
        if selected.namespace is not None:
            raise CommandError(
                "--namespace excludes --mesh and --stage", "Use --namespace alone, with the stage in it."
            )
        loaded = load(mesh or DEFAULT_MESH, stage)
        # The given region, or that of the stage if it has one.
        selected = replace(selected, namespace=loaded.namespace, region=selected.region or loaded.mesh.region)
        application = loaded.mesh.spark.application
        is_python_pinned = application.id is None and pins_python(application.release)
    options = selected.as_typed()
    mesh_client = selected.client()
    steps = Smoke(mesh_client, uuid.uuid4().hex[:12], timeout * 60, is_python_pinned, options)
    failed = False
    with leaving(lambda: f"The test envelopes that were sent go on; `asya list{options}` shows them."):
        for step in run(steps, tool, body, alarms=alarms):
            failed = failed or step.state == "failed"
            _print(step, as_json=as_json)
    if failed:
        raise typer.Exit(1)


def _print(step: Step, *, as_json: bool) -> None:
    if as_json:
        write_json_line(step)
        return
    typer.echo(line(step))  # noqa: TID251 - colored, and visible but for that
    if step.advice:
        echo(f"{'':<19}{step.advice}")


def run(steps: Smoke, tool: str | None, arguments: bytes, *, alarms: bool) -> Iterator[Step]:
    """Run the steps in order. Without the gateway no other step can be followed, so the first failure ends them."""
    from asya_cli.smoke.steps import Step, measured, publish_test_messages

    gateway = steps.gateway()
    yield gateway
    if gateway.state == "failed":
        return
    yield steps.light()
    yield steps.index()
    if tool is not None:
        yield steps.tool(tool, arguments)
    if alarms and steps.mesh.connection.endpoint_url is not None:
        yield Step("alarms", "skipped", 0.0, "a local cloud has no alarm topic")
    elif alarms:
        yield measured("alarms", lambda: publish_test_messages(steps.mesh.connection))


def line(step: Step) -> str:
    """Return the line of a step."""
    state = styled(f"{step.state:<7}", _COLORS[step.state])
    return f"{state} {step.name:<10} {step.seconds:6.1f} s  {visible(step.detail)}"
