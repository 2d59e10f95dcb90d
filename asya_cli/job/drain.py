"""`asya job drain` and `asya job undrain`: hold the new runs of a heavy actor back, and let them start again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli import clock
from asya_cli.options import MeshOptions, selects_mesh
from asya_cli.output.text import counted, echo

if TYPE_CHECKING:
    from asya.client.connection import Connection

Actor = Annotated[str, typer.Argument(help="The heavy actor.", show_default=False)]


@selects_mesh
def drain(
    actor: Actor,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why; `asya job list` shows it.")] = "",
    selected: MeshOptions,
) -> None:
    """Let no new run of a heavy actor start until `asya job undrain`. Its envelopes wait, and lose no attempt.

    Runs that go on end as usual; one that is formed at this moment still starts. `asya job list ACTOR` shows when none is open.
    Deadlines of waiting envelopes count. The drain outlasts deployments.
    """
    from asya_cli.job.listing import drain_line
    from asya_cli.job.mesh_runs import MeshRuns, run_errors

    options = selected.as_typed()
    mesh = MeshRuns(selected.client().connection, options)
    with run_errors(f"cannot drain {actor}"):
        mesh.check_actor(actor)
        is_known = mesh.is_heavy(actor)
        found = mesh.drains.start(actor, now=clock.now(), by=caller(mesh.connection), reason=reason)
        open_runs = len(list(mesh.records.open_numbers(actor)))
        echo(drain_line(actor, found, mesh.pending(actor), options))
    if open_runs:
        echo(f"{counted(open_runs, 'run')} still open; `asya job list {actor}{options}` shows them", err=True)
    if not is_known:
        echo(f"{actor} has had no envelope yet; if it is a light actor, the drain does nothing", err=True)


@selects_mesh
def undrain(
    actor: Actor,
    *,
    selected: MeshOptions,
) -> None:
    """End the drain of a heavy actor: the runs of its waiting envelopes start."""
    from asya_cli.job.mesh_runs import MeshRuns, run_errors

    mesh = MeshRuns(selected.client().connection)
    with run_errors(f"cannot end the drain of {actor}"):
        if mesh.drains.get(actor) is None:
            mesh.check_actor(actor)
            echo(f"{actor} is not drained", err=True)
        mesh.drains.end(actor)
        pending = mesh.pending(actor)
    problem = run_reconciler(mesh.connection)
    when = "within 5 minutes" if problem else "now"
    echo(f"{actor}: not drained; the runs of {counted(pending, 'pending envelope')} start {when}")
    if problem:
        echo(f"the reconciler could not be started, so its next sweep starts the runs: {problem}", err=True)


def caller(connection: Connection) -> str:
    """Return the ARN of the user's credentials; empty if AWS does not say."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return connection.sts().get_caller_identity()["Arn"]
    except (ClientError, BotoCoreError):
        return ""


def run_reconciler(connection: Connection) -> str:
    """Run the reconciler once; return why that failed, or an empty text.

    Dispatch requests of operators do not count, because the dispatcher accepts those of the mesh's roles only.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from asya.protocol import names

    try:
        connection.functions().invoke(
            FunctionName=names.function_name(connection.namespace, names.RECONCILE), InvocationType="Event"
        )
    except (ClientError, BotoCoreError) as error:
        return str(error)
    return ""
