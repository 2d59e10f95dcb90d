"""Settling a job run that is over: whose results count, who is charged, who runs again (`protocol §10`)."""

from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import Manifest, driver_log_key
from asya.spark import run_failures
from asya.spark.aws.run_events import JobRunEvent
from asya.spark.aws.run_items import Resolution, RunRecord
from asya.spark.aws.run_results import RunOutput
from asya.spark.capacity import failed_for_capacity
from asya.spark.lambdas.services import SparkServices
from asya.spark.run_failures import CHARGED, SPARK_JOB_FAILED, WAITING, FailedRun, FailureDecision


def resolve(services: SparkServices, manifest: Manifest, event: JobRunEvent) -> Resolution:
    """Settle a run, once: who comes second gets what was decided first.

    Raises:
        botocore.exceptions.ClientError: if it could not be settled now.
    """
    records, actor, number = services.records, manifest.actor, manifest.number
    findings = services.results.find(actor, number)
    failed_origin = None
    if findings.source == "commit":
        decision = FailureDecision("again") if findings.unreached is not None and findings.error is None else CHARGED
    elif not event.job_run_id:
        decision = CHARGED  # it could not even be asked for, and asking for less of it will not help
    elif findings.stage == "absent" and failed_for_capacity(event.state, event.details):
        decision = WAITING
    else:
        failed_origin = run_failures.origin(manifest)
        failed_run = FailedRun(
            lost=findings.lost(len(manifest.members)),
            stage=findings.stage,
            at_work=findings.at_work,
            failures=records.failures(actor, failed_origin) + 1,
        )
        decision = run_failures.decide(manifest, failed_run)
    resolution = Resolution(
        findings.source, findings.attempt, len(findings.parts), decision, started=findings.stage == "working"
    )
    return records.resolve(actor, number, resolution, now=services.now(), failed_origin=failed_origin)


def is_of_a_double(services: SparkServices, record: RunRecord, event: JobRunEvent) -> bool:
    """Whether the event tells of the end of a second run of the same manifest while the one on record goes on.

    Such a double is made where EMR Serverless forgets a token. It costs money only: its death is no reason to run anything
    again, and if it was the quicker one, its commit counts.
    """
    if record.resolution is not None or not record.job_run_id or record.job_run_id == event.job_run_id:
        return False
    if services.results.find(record.actor, record.number).source == "commit":
        return False
    return bool(event.job_run_id) and not services.job_runs.state(record.job_run_id).is_terminal


def charge_error(
    services: SparkServices, manifest: Manifest, resolution: Resolution, findings: RunOutput, event: JobRunEvent
) -> ErrorInfo:
    """The error for the members that a run is to be charged to."""
    if findings.error is not None:
        return findings.error
    name = f"{event.job_run_id} ({manifest.run_id})" if event.job_run_id else manifest.run_id
    died = f"job run {name} ended {event.state}: {event.details or 'it left no word why'}".rstrip(". ")
    if findings.source == "commit":
        return ErrorInfo(type=SPARK_JOB_FAILED, message=f"{died}, without a result for this envelope")
    if not event.job_run_id:
        return ErrorInfo(type=SPARK_JOB_FAILED, message=died)
    log = driver_log_key(manifest.actor, manifest.number, event.application_id, event.job_run_id)
    return run_failures.charge_error(
        died,
        resolution.decision,
        lost=len(findings.lost(len(manifest.members))),
        started=resolution.started,
        python_error=services.results.last_error(manifest.actor, manifest.number),
        hint=f"Its log: s3://{services.settings.bucket}/{log}; more by: asya run show {manifest.run_id}",
    )
