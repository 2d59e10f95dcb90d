"""EMR Serverless: starting job runs, and asking how they are (`protocol §10`)."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.protocol.job_runs import Usage
from asya.spark.run_request import RunRequest

if TYPE_CHECKING:
    from mypy_boto3_emr_serverless import EMRServerlessClient
    from mypy_boto3_emr_serverless.type_defs import JobRunTypeDef

TERMINAL_STATES = frozenset({"SUCCESS", "FAILED", "CANCELLED"})
# Taken, and nothing done for it yet; SCHEDULED means that its workers are being started.
WAITING_STATES = frozenset({"SUBMITTED", "PENDING", "QUEUED"})

# What EMR Serverless answers when it has no room or no time: waiting is what helps.
_THROTTLED = frozenset(
    {
        "ThrottlingException",
        "Throttling",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "SlowDown",
    }
)
_AT_CAPACITY = frozenset({"ServiceQuotaExceededException", "ApplicationMaxCapacityExceededException"})
_UNAVAILABLE = frozenset(
    {"InternalServerException", "InternalFailure", "ServiceUnavailableException", "ServiceUnavailable"}
)


class BusyError(RuntimeError):
    """Not now: throttled, at capacity, or no answer. Asking again later, with the same token, does no harm.

    Attributes:
        seconds: when it is worth trying again.
        for_capacity: it waits for another run to end.
    """

    def __init__(self, message: str, *, seconds: float, for_capacity: bool = False) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.for_capacity = for_capacity


class RefusedRunError(RuntimeError):
    """Never: EMR Serverless does not accept what is asked for."""


class ConflictingRunError(RuntimeError):
    """The token stands for another request, or the application is changing state."""


@dataclass(frozen=True, slots=True)
class JobRunState:
    """How a job run is, and since when. `details` say why, when it failed; `usage` what it took, once that is known."""

    job_run_id: str
    name: str
    state: str
    details: str
    usage: Usage | None = None
    since: datetime | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether it is over."""
        return self.state in TERMINAL_STATES


class EmrServerless:
    """The job runs of one application."""

    def __init__(self, emr: "EMRServerlessClient", *, application_id: str) -> None:
        self._emr = emr
        self._application_id = application_id

    def start(self, request: RunRequest) -> str:
        """Start a run, once: the same request gives the same run.

        Returns:
            EMR Serverless's id of the run.

        Raises:
            BusyError: later.
            RefusedRunError: never.
            ConflictingRunError: perhaps it runs already, under a request that has changed since (a deployment).
            botocore.exceptions.ClientError: not allowed, or the application is gone: something for the mesh's owner.
        """
        try:
            answer = self._emr.start_job_run(
                applicationId=self._application_id,
                clientToken=request.client_token,
                executionRoleArn=request.role_arn,
                executionIamPolicy={"policy": request.session_policy, "policyArns": list(request.policy_arns)},
                jobDriver={
                    "sparkSubmit": {
                        "entryPoint": request.entry_point,
                        "entryPointArguments": list(request.arguments),
                        "sparkSubmitParameters": request.submit_parameters,
                    }
                },
                tags=dict(request.tags),
                configurationOverrides={
                    "monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": request.log_uri}}
                },
                executionTimeoutMinutes=request.time_limit,
                name=request.name,
            )
        except BotoCoreError as error:
            raise BusyError(f"EMR Serverless did not answer: {error}", seconds=5) from error
        except ClientError as error:
            raise _typed_error(error) from error
        return answer["jobRunId"]

    def state(self, job_run_id: str) -> JobRunState:
        """How a run is (GetJobRun: 10 calls a second for the whole account)."""
        run = self._emr.get_job_run(applicationId=self._application_id, jobRunId=job_run_id)["jobRun"]
        details, since = run.get("stateDetails", ""), run.get("updatedAt")
        return JobRunState(job_run_id, run.get("name", ""), run["state"], details, _usage(run), since)

    def cancel(self, job_run_id: str) -> None:
        """Cancel a run; one that is over stays as it is.

        Raises:
            BusyError: later.
        """
        try:
            self._emr.cancel_job_run(applicationId=self._application_id, jobRunId=job_run_id)
        except ClientError as error:
            explained = _typed_error(error)
            if isinstance(explained, RefusedRunError):
                return
            raise explained from error

    def dashboard(self, job_run_id: str) -> str:
        """A link to the run's Spark UI that works for an hour (one such call a second for the whole account)."""
        return self._emr.get_dashboard_for_job_run(applicationId=self._application_id, jobRunId=job_run_id)["url"]

    def find(self, name: str, *, since: datetime) -> str | None:
        """The id of the run of this name, started since then; for runs whose start was never heard of."""
        pages = self._emr.get_paginator("list_job_runs").paginate(
            applicationId=self._application_id, createdAtAfter=since
        )
        return next((run["id"] for page in pages for run in page["jobRuns"] if run.get("name") == name), None)


def _usage(run: "JobRunTypeDef") -> Usage | None:
    """What is billed, where that is told already; else what was used."""
    billed, total = run.get("billedResourceUtilization"), run.get("totalResourceUtilization")
    found = billed or total
    if not found:
        return None
    return Usage(
        vcpu_hours=found.get("vCPUHour", 0.0),
        memory_gb_hours=found.get("memoryGBHour", 0.0),
        storage_gb_hours=found.get("storageGBHour", 0.0),
        billed=bool(billed),
    )


def _typed_error(error: ClientError) -> Exception:
    code = error.response["Error"]["Code"]
    message = f"{code}: {error.response['Error'].get('Message', '')}"
    if code in _THROTTLED:
        return BusyError(message, seconds=2)
    if code in _AT_CAPACITY:
        return BusyError(message, seconds=15, for_capacity=True)
    if code in _UNAVAILABLE:
        return BusyError(message, seconds=5)
    if code == "ConflictException":
        return ConflictingRunError(message)
    if code == "ValidationException":
        return RefusedRunError(message)
    return error
