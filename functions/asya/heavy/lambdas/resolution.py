"""Resolves an ended job run: which results count, who is charged, who runs again (`protocol §10`)."""

from botocore.exceptions import ClientError

from asya.heavy import run_failures
from asya.heavy.aws.completion_messages import JobRunEvent
from asya.heavy.aws.emr_serverless import is_unknown_run
from asya.heavy.aws.run_files import RunOutput
from asya.heavy.aws.run_items import Resolution, RunRecord, job_run_number
from asya.heavy.capacity import failed_for_capacity, got_no_executor
from asya.heavy.lambdas.services import SparkServices
from asya.heavy.run_failures import CHARGED, NO_EXECUTOR, SPARK_JOB_FAILED, WAITING, FailedRun, FailureDecision
from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import Manifest, driver_log_key


def resolve(services: SparkServices, manifest: Manifest, record: RunRecord, event: JobRunEvent) -> Resolution:
    """Resolves a run once; later calls return the first resolution.

    Raises:
        botocore.exceptions.ClientError: if S3 or DynamoDB fails.
    """
    records, actor, number = services.records, manifest.actor, manifest.number
    output = services.results.find(record.folder, len(manifest.members))
    failed_origin = None
    if output.source == "commit":
        decision = FailureDecision("again") if output.unreached is not None and output.error is None else CHARGED
    elif not event.job_run_id:
        decision = CHARGED  # EMR Serverless rejected the run; a smaller one would be rejected too
    elif record.host is not None and output.stage == "absent":
        decision = WAITING  # the resident run ended before it took this batch
    elif failed_for_capacity(event.state, event.details, has_driver_output=output.stage != "absent"):
        decision = NO_EXECUTOR if got_no_executor(event.details) else WAITING
    else:
        failed_origin = run_failures.origin(manifest)
        failed_run = FailedRun(
            missing=output.missing(len(manifest.members)),
            stage=output.stage,
            at_work=output.at_work,
            is_first=output.is_first,
            failures=records.failures(actor, failed_origin) + 1,
        )
        decision = run_failures.decide(manifest, failed_run)
    resolution = Resolution(
        output.source, output.attempt, len(output.parts), decision, started=output.stage == "working"
    )
    return records.resolve(actor, number, resolution, now=services.now(), failed_origin=failed_origin)


def is_duplicate_run(services: SparkServices, record: RunRecord, event: JobRunEvent) -> bool:
    """Whether a second job run of the same manifest ended while the recorded one continues.

    EMR Serverless starts a second run if it forgets a client token. Its failure changes nothing, and its commit counts if it
    is the first one.
    """
    if record.resolution is not None or not record.job_run_id or record.job_run_id == event.job_run_id:
        return False
    if services.results.has_commit(record.folder):
        return False
    return bool(event.job_run_id) and not has_ended(services, record.job_run_id)


def has_ended(services: SparkServices, job_run_id: str) -> bool:
    """Whether a job run has ended; one that EMR Serverless no longer knows has.

    Raises:
        botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError: if its state cannot be read.
    """
    try:
        return services.job_runs.state(job_run_id).is_terminal
    except ClientError as error:
        if not is_unknown_run(error):
            raise
        return True


def charge_error(
    services: SparkServices,
    manifest: Manifest,
    resolution: Resolution,
    output: RunOutput,
    event: JobRunEvent,
    *,
    record: RunRecord,
    charged: int,
) -> ErrorInfo:
    """The error of the members that are charged with a run; `charged` is their number."""
    if output.error is not None:
        return output.error
    name = f"{event.job_run_id} ({manifest.run_id})" if event.job_run_id else manifest.run_id
    ending = f"job run {name} ended {event.state}: {event.details or 'no reason given'}".rstrip(". ")
    if output.source == "commit":
        return ErrorInfo(type=SPARK_JOB_FAILED, message=f"{ending}, without a result for this envelope")
    if not event.job_run_id:
        return ErrorInfo(type=SPARK_JOB_FAILED, message=ending)
    log = driver_log_key(manifest.actor, job_run_number(record), event.application_id, event.job_run_id)
    return run_failures.charge_error(
        ending,
        resolution.decision,
        missing=len(output.missing(len(manifest.members))),
        charged=charged,
        started=resolution.started,
        python_error=services.results.last_error(record.folder),
        hint=f"Log: s3://{services.settings.bucket}/{log}; details: asya job show {manifest.run_id}",
    )
