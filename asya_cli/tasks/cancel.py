"""`asya cancel`: cancels a task."""

from __future__ import annotations

from asya_cli.errors import CommandError, ExitCode
from asya_cli.options import DEFAULT_STATE, EnvelopeId, Namespace, Region, State, client
from asya_cli.output.text import echo
from asya_cli.tasks.records import awaited_task


def cancel(
    envelope_id: EnvelopeId,
    *,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """Cancel a task with its children and its job runs. A task that has ended does not change."""
    mesh = client(state, namespace, region)
    try:
        mesh.cancel(envelope_id)
    except CommandError as error:
        if error.code is not ExitCode.NOT_FOUND or awaited_task(mesh, envelope_id) is None:
            raise
        mesh.cancel(envelope_id)
    task = mesh.task(envelope_id)
    echo(task.status if task is not None else "canceled")
