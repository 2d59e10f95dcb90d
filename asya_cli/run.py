"""`asya run`: shows the job runs of heavy actors."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.options import DEFAULT_STATE, Namespace, Region, State, client
from asya_cli.output.text import echo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.spark.aws.run_items import RunRecord
    from asya_cli.connection import Connection

app = typer.Typer(no_args_is_help=True, help="Show the job runs of heavy actors.")


@app.callback()
def run() -> None:
    """Show the job runs of heavy actors."""


@app.command()
def show(
    run_id: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="The run id from an error or a task, such as asya.….0000000001.", show_default=False
        ),
    ],
    *,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
) -> None:
    """Show the state of a job run, its resources, the key of its log, and a link to its Spark UI (valid for an hour)."""
    connection = client(state, namespace, region).connection
    record = read_record(connection, run_id)
    for name, value in lines(record, run_id):
        echo(f"{name:<10} {value}")
    if record.job_run_id and record.application_id:
        echo(f"{'dashboard':<10} {_dashboard(connection, record)}")


def read_record(connection: Connection, run_id: str) -> RunRecord:
    """Return the record of a run.

    Raises:
        CommandError: There is no such run.
    """
    from asya.protocol import names
    from asya.protocol.job_runs import parse_run_id
    from asya.spark.aws.run_records import RunRecords

    place = parse_run_id(run_id, connection.namespace)
    if place is None:
        raise CommandError(
            f"{run_id!r} is not a job run of the mesh {connection.namespace!r}",
            f"A run id has the form asya.{connection.namespace}.ACTOR.NUMBER; the number has ten digits.",
        )
    table = names.table_name(connection.namespace, "pending")
    record = RunRecords(connection.dynamodb(), table=table, retention=timedelta(0)).get(*place)
    if record is None:
        raise CommandError(f"there is no job run {run_id!r}", "Check the id. The records of old runs expire.")
    return record


def lines(record: RunRecord, run_id: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each known fact of a run."""
    from asya.protocol.job_runs import driver_log_key

    yield "run", run_id
    yield "job run", record.job_run_id or "not started"
    yield "state", f"{record.job_state or 'SUBMITTED'} (in the mesh: {record.state})"
    if record.details:
        yield "details", record.details
    yield "envelopes", str(record.members)
    yield "formed", record.formed_at
    if record.running_at:
        yield "running", record.running_at
    if record.usage:
        kind = "billed" if record.usage.billed else "used"
        yield kind, f"{record.usage.vcpu_hours:g} vCPU-hours, {record.usage.memory_gb_hours:g} GB-hours of memory"
    if record.job_run_id and record.application_id:
        yield "log", driver_log_key(record.actor, record.number, record.application_id, record.job_run_id)


def _dashboard(connection: Connection, record: RunRecord) -> str:
    from botocore.exceptions import BotoCoreError, ClientError

    from asya.spark.aws.emr_serverless import EmrServerless

    try:
        job_runs = EmrServerless(connection.emr_serverless(), application_id=record.application_id)
        return job_runs.dashboard(record.job_run_id or "")
    except (ClientError, BotoCoreError) as error:
        return f"not available: {error}"
