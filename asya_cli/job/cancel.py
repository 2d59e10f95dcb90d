"""`asya job cancel`: cancels one job run at EMR Serverless."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asya_cli.errors import CommandError
from asya_cli.job.options import RunId
from asya_cli.options import MeshOptions, selects_mesh
from asya_cli.output.text import echo

if TYPE_CHECKING:
    from asya.heavy.aws.run_items import RunRecord
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
