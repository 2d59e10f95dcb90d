"""`asya job cancel`, `drain` and `undrain`: cancel a job run, or hold new runs of an actor back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli import clock
from asya_cli.errors import CommandError
from asya_cli.job.options import RunId
from asya_cli.options import MeshOptions, selects_mesh
from asya_cli.output.text import counted, echo

if TYPE_CHECKING:
    from asya.client.connection import Connection
    from asya.heavy.aws.run_records import RunRecord
    from asya_cli.job.mesh_runs import MeshRuns


@selects_mesh
def cancel(
    run_id: RunId,
    *,
    selected: MeshOptions,
) -> None:
    """Cancel a job run at EMR Serverless. Its envelopes are not canceled.

    For the envelopes this is a death of the run: finished ones count, the others run again. One that was the first and only
    one at work is charged an attempt. Drain the actor before, so that no new run starts at once; or cancel the tasks with
    `asya cancel ID`, which also ends a run without a remaining task.
    """
    from asya_cli.job.mesh_runs import MeshRuns, run_errors

    options = selected.as_typed()
    mesh = MeshRuns(selected.client().connection, options)
    with run_errors(f"cannot cancel the job run {run_id}"):
        record = mesh.read(run_id)
        cancel_run(mesh, record)
        drained = mesh.drains.get(record.actor) is not None
    echo(f"{run_id}: canceling; `asya job show {run_id}{options}` shows the verdict once it has ended")
    if not drained:
        echo(f"its unfinished envelopes run again at once, because {record.actor} is not drained", err=True)


def cancel_run(mesh: MeshRuns, record: RunRecord) -> None:
    """Cancel a run.

    Raises:
        CommandError: The run has not started, it has ended, or EMR Serverless is busy.
    """
    from asya.heavy.aws.emr_serverless import TERMINAL_STATES, BusyError, EmrServerless

    run_id = mesh.run_id(record)
    # The job run of a resident run goes on after its own envelopes.
    has_ended = record.state == "closed" and not record.is_resident
    if has_ended or record.usage is not None or record.job_state in TERMINAL_STATES:
        raise CommandError(f"{run_id} has ended already: {record.job_state or 'refused'}")
    application = mesh.application_id(record)
    if not record.job_run_id or not application:
        raise CommandError(
            f"{run_id} is not known to have started, so there is no job run to cancel",
            "Try again in some seconds, or cancel its tasks with `asya cancel ID`.",
        )
    try:
        EmrServerless(mesh.connection.emr_serverless(), application_id=application).cancel(record.job_run_id)
    except BusyError as error:
        raise CommandError(f"EMR Serverless is busy: {error}", "Try again in some seconds.") from error


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
