"""`asya run`: calls one handler or job, and shows what it gave."""

from __future__ import annotations

import os
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asya_cli.errors import CommandError, ExitCode
from asya_cli.mesh_file.loading import load
from asya_cli.options import DEFAULT_MESH, MeshFile
from asya_cli.output.console import Console
from asya_cli.output.text import echo, write_json_line
from asya_cli.sending.send import check_id

if TYPE_CHECKING:
    from asya.protocol.mesh_table import Actor, MeshTable
    from asya_infra.mesh_file import LoadedMesh
    from asya_local.single_calls.calls import CallReport

FAILED = 1


def run(
    handler: Annotated[
        str, typer.Argument(metavar="HANDLER", help="An actor, or the handler or job of one.", show_default=False)
    ],
    *,
    payload: Annotated[
        list[str] | None,
        typer.Option(
            help="@FILE, - for standard input, JSON, or KEY=VALUE; repeat the option for more keys. A value that is no JSON "
            "is text."
        ),
    ] = None,
    then: Annotated[
        list[str] | None, typer.Option("--next", help="The actors after this one in the route, in order.")
    ] = None,
    envelope_id: Annotated[
        str,
        typer.Option("--id", help="The id of the envelope: `append_once` appends once for each. [default: a new one]"),
    ] = "",
    data: Annotated[Path, typer.Option(help="The folder behind ASYA_DATA_URI.")] = Path("data"),
    mesh: MeshFile = DEFAULT_MESH,
    stage: Annotated[str, typer.Option(help="A stage of the mesh file.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")] = False,
) -> None:
    """Call a handler or job once on this machine, and show its frames, commands and changes of the route.

    It finds the packages that it has on AWS: those of the requirements.txt of its folder. Secrets are read from variables of
    this process. No mesh is needed, and nothing is sent. The exit code is 1 if the call failed.
    """
    from asya_cli.run.report import show_report
    from asya_cli.sending.payload import read_payload
    from asya_infra.build.packages import PackagesError
    from asya_infra.mesh_file import to_table

    content = read_payload(payload or [])
    if envelope_id:
        check_id(envelope_id)
    loaded = load(mesh, stage)
    table = to_table(loaded)
    name = _actor_of(table, handler)
    variables = _variables(loaded, name, table.actors[name])
    try:
        call = _Call(envelope_id or str(uuid.uuid4()), name, content, tuple(then or ()), f"file://{data.resolve()}/")
        report = call.run(loaded, table.actors[name], variables)
    except PackagesError as error:
        raise CommandError(str(error)) from error
    if as_json:
        write_json_line(report)
    else:
        show_report(Console(), name, table.actors[name], report)
    if report.error is not None:
        sys.exit(FAILED)


@dataclass(frozen=True)
class _Call:
    """One call."""

    id: str
    actor: str
    payload: Any
    next: tuple[str, ...]
    data_uri: str

    def run(self, loaded: LoadedMesh, actor: Actor, variables: dict[str, str]) -> CallReport:
        """Call the job or the handler of an actor."""
        from asya.capabilities.legacy.options import RESPONSES
        from asya_local.single_calls.calls import CallRequest, JobCall, call_handler, run_job

        if actor.spark is not None:
            job = JobCall(id=self.id, actor=self.actor, payload=self.payload, data_uri=self.data_uri)
            return run_job(loaded, job, actor, variables=variables, tell=_tell)
        request = CallRequest(
            id=self.id,
            actor=self.actor,
            handler=str(actor.handler),
            mode=actor.handler_mode,
            lists_fan_out=actor.fan_out_lists,
            responses=RESPONSES.of(actor),
            timeout=actor.timeout,
            payload=self.payload,
            next=self.next,
        )
        return call_handler(loaded, request, actor, variables, self.data_uri)


def _tell(note: str) -> None:
    echo(f"note: {note}", err=True)


def _actor_of(table: MeshTable, handler: str) -> str:
    """Return the actor of this name, or the first one with this handler or job."""
    from asya.protocol import names
    from asya_infra.mesh_file.source import did_you_mean

    for name, actor in table.actors.items():
        if handler in (name, actor.handler, actor.spark.job if actor.spark is not None else None):
            if actor.handler is None and actor.spark is None:
                raise CommandError(f"actor {name!r} is of kind {actor.kind!r} and has no code of yours")
            return name
    actors = {
        name: actor for name, actor in table.actors.items() if actor.handler is not None or actor.spark is not None
    }
    own = [name for name in actors if not names.is_reserved(name)]
    code = [actor.handler or (actor.spark.job if actor.spark else "") for actor in actors.values()]
    raise CommandError(
        f"the mesh has no actor, handler or job {handler!r}{did_you_mean(handler, [*own, *code])}",
        f"Its actors with code are {', '.join(own) or 'none'}.",
        ExitCode.NOT_FOUND,
    )


def _variables(loaded: LoadedMesh, name: str, actor: Actor) -> dict[str, str]:
    """Return the variables of an actor: its `env`, and its secrets from this process.

    Raises:
        CommandError: A secret is missing.
    """
    section = loaded.mesh.actors.get(name)
    missing = [variable for variable in actor.secrets if variable not in os.environ]
    if missing:
        raise CommandError(
            f"actor {name!r} has secrets whose values are missing: {', '.join(missing)}",
            f"Set them for this command: {' '.join(f'{variable}=…' for variable in missing)} asya run {name}",
        )
    own = dict(section.env) if section is not None else {}
    return own | {variable: os.environ[variable] for variable in actor.secrets}
