"""Settling a job run that is over: whose results count, who is charged, who runs again (`protocol §10`)."""

from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import Manifest, driver_log_key
from asya.spark import run_failures as run_deaths
from asya.spark.aws.run_events import JobRunEvent
from asya.spark.aws.run_items import RunRecord, Settlement
from asya.spark.aws.run_results import Findings
from asya.spark.capacity import failed_for_capacity
from asya.spark.lambdas.services import SparkServices
from asya.spark.run_failures import CHARGED, SPARK_JOB_FAILED, WAITING, Remains, Verdict


def settle(services: SparkServices, manifest: Manifest, event: JobRunEvent) -> Settlement:
    """Settle a run, once: who comes second gets what was decided first.

    Raises:
        botocore.exceptions.ClientError: if it could not be settled now.
    """
    records, actor, number = services.records, manifest.actor, manifest.number
    findings = services.results.find(actor, number)
    died_for = None
    if findings.source == "commit":
        verdict = Verdict("again") if findings.unreached is not None and findings.error is None else CHARGED
    elif not event.job_run_id:
        verdict = CHARGED  # it could not even be asked for, and asking for less of it will not help
    elif findings.stage == "absent" and failed_for_capacity(event.state, event.details):
        verdict = WAITING
    else:
        died_for = run_deaths.origin(manifest)
        remains = Remains(
            lost=findings.lost(len(manifest.members)),
            stage=findings.stage,
            at_work=findings.at_work,
            deaths=records.deaths(actor, died_for) + 1,
        )
        verdict = run_deaths.judge(manifest, remains)
    settlement = Settlement(
        findings.source, findings.attempt, len(findings.parts), verdict, started=findings.stage == "working"
    )
    return records.settle(actor, number, settlement, now=services.now(), died_for=died_for)


def is_of_a_double(services: SparkServices, record: RunRecord, event: JobRunEvent) -> bool:
    """Whether the event tells of the end of a second run of the same manifest while the one on record goes on.

    Such a double is made where EMR Serverless forgets a token. It costs money only: its death is no reason to run anything
    again, and if it was the quicker one, its commit counts.
    """
    if record.settlement is not None or not record.job_run_id or record.job_run_id == event.job_run_id:
        return False
    if services.results.find(record.actor, record.number).source == "commit":
        return False
    return bool(event.job_run_id) and not services.job_runs.state(record.job_run_id).is_terminal


def charge(
    services: SparkServices, manifest: Manifest, settlement: Settlement, findings: Findings, event: JobRunEvent
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
    return run_deaths.charge(
        died,
        settlement.verdict,
        lost=len(findings.lost(len(manifest.members))),
        started=settlement.started,
        python_error=services.results.last_error(manifest.actor, manifest.number),
        hint=f"Its log: s3://{services.settings.bucket}/{log}; more by: asya run show {manifest.run_id}",
    )
