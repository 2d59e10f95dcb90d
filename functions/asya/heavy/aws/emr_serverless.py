"""The job runs of EMR Serverless: start, state, cancel, find (`protocol §10`)."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.function.nack import ServiceError
from asya.heavy.capacity import LEFT_QUEUE, RETRY_SECONDS, refused_for_capacity
from asya.heavy.run_request import RunRequest
from asya.protocol.job_runs import Usage

if TYPE_CHECKING:
    from mypy_boto3_emr_serverless import EMRServerlessClient
    from mypy_boto3_emr_serverless.type_defs import JobRunTypeDef, MonitoringConfigurationTypeDef

TERMINAL_STATES = frozenset({"SUCCESS", "FAILED", "CANCELLED"})
# Accepted, without workers; in SCHEDULED the workers start.
WAITING_STATES = frozenset({"SUBMITTED", "PENDING", "QUEUED"})

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
_UNKNOWN = "ResourceNotFoundException"
# The reason of the end of a run that EMR Serverless no longer knows.
UNKNOWN_RUN = "EMR Serverless no longer knows the run"
_UNAVAILABLE = frozenset(
    {"InternalServerException", "InternalFailure", "ServiceUnavailableException", "ServiceUnavailable"}
)
# EMR Serverless does not document the state and the words of a run that exceeded its queue timeout. A timeout has 15
# minutes at least, and 360 by default; a run that is canceled sooner may have been canceled by a person.
_QUEUE_MINUTES = {"FAILED": 15, "CANCELLED": 360}
_QUEUE_WORDS = ("queue", "timeout", "timed out")


class BusyError(ServiceError):
    """EMR Serverless is throttled, at capacity or unavailable; a retry with the same token is idempotent.

    Attributes:
        seconds: delay before the retry.
        for_capacity: whether the retry needs another run to end.
    """

    def __init__(self, message: str, *, seconds: float, for_capacity: bool = False) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.for_capacity = for_capacity


class RefusedRunError(RuntimeError):
    """EMR Serverless rejects the request as invalid; a retry does not help."""


class ConflictingRunError(RuntimeError):
    """The client token belongs to another request, or the application changes its state."""


@dataclass(frozen=True, slots=True)
class JobRunState:
    """The state of a job run.

    Attributes:
        details: the reason of a failure.
        usage: the resources used, once EMR Serverless reports them.
        since: when the run was updated last.
    """

    job_run_id: str
    name: str
    state: str
    details: str
    usage: Usage | None = None
    since: datetime | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the run has ended."""
        return self.state in TERMINAL_STATES


class EmrServerless:
    """The job runs of one application."""

    def __init__(self, emr: "EMRServerlessClient", *, application_id: str) -> None:
        self._emr = emr
        self._application_id = application_id

    def start(self, request: RunRequest) -> str:
        """Starts a run; idempotent, because the same request gives the same run.

        Returns:
            The job run id of EMR Serverless.

        Raises:
            BusyError: retry later.
            RefusedRunError: the request is invalid.
            ConflictingRunError: a run with this token may exist; a deployment may have changed the request since.
            botocore.exceptions.ClientError: access is denied, or the application is missing.
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
                configurationOverrides={"monitoringConfiguration": _monitoring(request)},
                executionTimeoutMinutes=request.time_limit,
                name=request.name,
            )
        except BotoCoreError as error:
            raise BusyError(f"EMR Serverless did not answer: {error}", seconds=5) from error
        except ClientError as error:
            raise _typed_error(error) from error
        return answer["jobRunId"]

    def state(self, job_run_id: str) -> JobRunState:
        """The state of a run; an account may call GetJobRun 10 times per second."""
        run = self._emr.get_job_run(applicationId=self._application_id, jobRunId=job_run_id)["jobRun"]
        return JobRunState(
            job_run_id, run.get("name", ""), run["state"], _details(run), _usage(run), run.get("updatedAt")
        )

    def has_ended(self, job_run_id: str) -> bool:
        """Whether a job run has ended; one that EMR Serverless no longer knows has.

        Raises:
            botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError: if its state cannot be read.
        """
        try:
            return self.state(job_run_id).is_terminal
        except ClientError as error:
            if not is_unknown_run(error):
                raise
            return True

    def cancel(self, job_run_id: str) -> None:
        """Cancels a run; an ended or unknown run stays unchanged.

        Raises:
            BusyError: retry later.
        """
        try:
            self._emr.cancel_job_run(applicationId=self._application_id, jobRunId=job_run_id)
        except ClientError as error:
            typed = _typed_error(error)
            if isinstance(typed, RefusedRunError) or is_unknown_run(error):
                return
            raise typed from error

    def dashboard(self, job_run_id: str) -> str:
        """A link to the run's Spark UI, valid for an hour; an account may make one such call per second."""
        return self._emr.get_dashboard_for_job_run(applicationId=self._application_id, jobRunId=job_run_id)["url"]

    def find(self, name: str, *, since: datetime) -> str | None:
        """The id of the run with this name, started since then; for starts whose response was lost."""
        pages = self._emr.get_paginator("list_job_runs").paginate(
            applicationId=self._application_id, createdAtAfter=since
        )
        return next((run["id"] for page in pages for run in page["jobRuns"] if run.get("name") == name), None)


def is_unknown_run(error: Exception) -> bool:
    """Whether an error says that EMR Serverless does not know the run, or no longer."""
    return isinstance(error, ClientError) and error.response["Error"]["Code"] == _UNKNOWN


def _details(run: "JobRunTypeDef") -> str:
    """The reason of the state, with the time in the queue if the run ended there."""
    details, minutes = run.get("stateDetails", ""), run.get("queuedDurationMilliseconds", 0) / 60_000
    if "startedAt" in run or minutes < _QUEUE_MINUTES.get(run["state"], math.inf):
        return details
    if run["state"] == "FAILED" and not any(word in details.casefold() for word in _QUEUE_WORDS):
        return details
    return f"{details} ({LEFT_QUEUE} after {minutes:.0f} minutes)".lstrip()


def _usage(run: "JobRunTypeDef") -> Usage | None:
    """The billed resources if EMR Serverless reports them, else the used ones."""
    billed, total = run.get("billedResourceUtilization"), run.get("totalResourceUtilization")
    resources = billed or total
    if not resources:
        return None
    return Usage(
        vcpu_hours=resources.get("vCPUHour", 0.0),
        memory_gb_hours=resources.get("memoryGBHour", 0.0),
        storage_gb_hours=resources.get("storageGBHour", 0.0),
        billed=bool(billed),
    )


def _monitoring(request: RunRequest) -> "MonitoringConfigurationTypeDef":
    """The places of the logs: the bucket of the mesh, and by default also the storage of EMR Serverless."""
    logs: MonitoringConfigurationTypeDef = {"s3MonitoringConfiguration": {"logUri": request.log_uri}}
    if not request.managed_logs:
        logs["managedPersistenceMonitoringConfiguration"] = {"enabled": False}
    return logs


def _typed_error(error: ClientError) -> Exception:
    code = error.response["Error"]["Code"]
    message = f"{code}: {error.response['Error'].get('Message', '')}"
    if code in _THROTTLED:
        return BusyError(message, seconds=2)
    if refused_for_capacity(code):
        return BusyError(message, seconds=RETRY_SECONDS, for_capacity=True)
    if code in _UNAVAILABLE:
        return BusyError(message, seconds=5)
    if code == "ConflictException":
        return ConflictingRunError(message)
    if code == "ValidationException":
        return RefusedRunError(message)
    return error
