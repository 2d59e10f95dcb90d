"""The client of the simulated EMR Serverless in one process."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from asya.testing.services.job_service import APPLICATION, JobRun, JobService, RefusedError
from asya.testing.services.process import Process

_REFUSALS = ("ThrottlingException", "InternalServerException", "ServiceQuotaExceededException")
POLICY_LIMIT = 2048


@dataclass
class JobClient:
    """The calls of one process to EMR Serverless."""

    process: Process
    service: JobService

    def start_job_run(self, **request: Any) -> dict[str, Any]:
        """Starts a run, or returns the run of this token."""
        _check(request)
        # Without retries of the SDK, so that the caller handles each error.
        return self._call(
            f"StartJobRun {request['name']}",
            lambda: {"jobRunId": self.service.start(request).job_run_id},
            refusals=_REFUSALS,
        )

    def get_job_run(self, *, applicationId: str, jobRunId: str) -> dict[str, Any]:  # noqa: N803
        """The state of a run."""
        return self._call(f"GetJobRun {jobRunId}", lambda: {"jobRun": _described(self.service.get(jobRunId))})

    def cancel_job_run(self, *, applicationId: str, jobRunId: str) -> dict[str, Any]:  # noqa: N803
        """Cancels a run that has not ended."""
        return self._call(f"CancelJobRun {jobRunId}", lambda: {"jobRunId": self.service.cancel(jobRunId).job_run_id})

    def get_paginator(self, action: str) -> "_Pages":
        """The paginator of the runs."""
        if action != "list_job_runs":
            raise NotImplementedError(action)
        return _Pages(self)

    def list_job_runs(self, since: datetime) -> dict[str, Any]:
        """All runs in one page."""
        at = self.process.simulation.scheduler.at
        return self._call(
            "ListJobRuns", lambda: {"jobRuns": [_listed(run, at(run.created_at)) for run in self.service.listed(since)]}
        )

    def _call(
        self, what: str, do: Callable[[], dict[str, Any]], refusals: tuple[str, ...] = ("ThrottlingException",)
    ) -> dict[str, Any]:
        def answer() -> dict[str, Any]:
            try:
                return do()
            except RefusedError as refused:
                raise _error(refused.code) from None

        return self.process.call(
            "emr",
            what,
            answer,
            refusal=lambda: _error(self.process.simulation.random.choice(refusals)),
            lost_response=lambda: ReadTimeoutError(endpoint_url="https://emr-serverless"),
            repeatable=False,
        )


@dataclass
class _Pages:
    client: JobClient

    def paginate(self, *, applicationId: str, createdAtAfter: datetime) -> Iterator[dict[str, Any]]:  # noqa: N803
        """The pages."""
        yield self.client.list_job_runs(createdAtAfter)


def _check(request: dict[str, Any]) -> None:
    if (
        request["applicationId"] != APPLICATION
        or len(request["clientToken"]) > 64
        or request["executionTimeoutMinutes"] < 1
    ):
        raise _error("ValidationException")
    if len(request["executionIamPolicy"]["policy"]) > POLICY_LIMIT:
        raise _error("ValidationException")


def _described(run: JobRun) -> dict[str, Any]:
    described = {"jobRunId": run.job_run_id, "name": run.name, "state": run.state, "stateDetails": run.details}
    if run.began_at is None or run.ended_at is None:
        return described
    return described | {"totalResourceUtilization": _utilization(run, (run.ended_at - run.began_at) / 3600)}


def _utilization(run: JobRun, hours: float) -> dict[str, float]:
    """What the driver and the first executors of a run used."""
    words = shlex.split(run.request["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"])
    conf = dict(word.split("=", 1) for word in words if word.startswith("spark."))
    executors = int(conf["spark.dynamicAllocation.initialExecutors"])
    cores = int(conf["spark.driver.cores"]) + executors * int(conf["spark.executor.cores"])
    megabytes = _megabytes(conf["spark.driver.memory"]) + executors * _megabytes(conf["spark.executor.memory"])
    return {"vCPUHour": cores * hours, "memoryGBHour": megabytes / 1024 * hours, "storageGBHour": 0.0}


def _megabytes(text: str) -> int:
    return int(text[:-1]) * {"m": 1, "g": 1024}[text[-1]]


def _listed(run: JobRun, created_at: datetime) -> dict[str, Any]:
    return {"id": run.job_run_id, "name": run.name, "state": run.state, "createdAt": created_at}


def _error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "simulated"}}, "simulated")
