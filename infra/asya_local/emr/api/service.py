"""The actions of the API."""

from __future__ import annotations

import base64
import json
import threading
import time
from typing import TYPE_CHECKING, Any

from asya_local.authentication.admission import page_token
from asya_local.emr.capacity import size_of
from asya_local.emr.errors import conflict, throttled, validation_error
from asya_local.emr.refused_settings import refusal
from asya_local.emr.run_registry import RunRegistry, TokenBucket, TokenMismatchError, now
from asya_local.emr.runs import TERMINAL, WAITING, JobRun, new_run_id
from asya_local.emr.settings import ApplicationSettings, EmrSettings
from asya_local.emr.submit_parameters import SubmitParametersError, missing_catalog, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from asya_local.emr.access.identity import IamClient, Principal
    from asya_local.emr.api.model import ActionCall
    from asya_local.emr.faults import Faults
    from asya_local.emr.scheduler import Scheduler

Result = dict[str, Any]
_DEFAULT_PAGE = 50
_QUEUE_LIMIT = 2000
MUTATING = frozenset({"StartJobRun", "CancelJobRun"})
"""The actions that faults may repeat, or execute without a response."""

# The quotas of an AWS account: calls per second and burst. The settings have that of StartJobRun.
_RATES = {
    "ListJobRuns": (1.0, 25),
    "CancelJobRun": (1.0, 25),
    "GetJobRun": (10.0, 50),
    "GetDashboardForJobRun": (1.0, 2),
}


class Service:
    """Executes API calls."""

    def __init__(
        self,
        settings: EmrSettings,
        registry: RunRegistry,
        iam: IamClient,
        scheduler: Scheduler,
        faults: Faults,
        *,
        secret: str,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._iam = iam
        self._scheduler = scheduler
        self._faults = faults
        self._secret = secret
        self._rates_lock = threading.Lock()
        self._buckets = {name: TokenBucket(*rate) for name, rate in _RATES.items()}
        self._start_rate: tuple[float, int] | None = None
        self._actions: dict[str, Callable[[Principal, Mapping[str, Any]], Result]] = {
            "CreateApplication": self._create_application,
            "GetApplication": self._get_application,
            "ListApplications": self._list_applications,
            "StartApplication": self._start_application,
            "StopApplication": self._stop_application,
            "StartJobRun": self._start_job_run,
            "GetJobRun": self._get_job_run,
            "ListJobRuns": self._list_job_runs,
            "CancelJobRun": self._cancel_job_run,
            "GetDashboardForJobRun": self._get_dashboard,
        }

    def execute(self, call: ActionCall, caller: Principal) -> Result:
        """Authorize, throttle and execute one call.

        Raises:
            ServiceError: The call is denied, throttled or invalid.
        """
        action = self._actions.get(call.action)
        if action is None:
            raise validation_error(f"The local EMR Serverless does not offer {call.action}")
        self._iam.authorize(caller, f"emr-serverless:{call.action}", self._resource(call))
        self._throttle(call.action)
        return action(caller, call.parameters)

    def _resource(self, call: ActionCall) -> str:
        application = call.parameters.get("applicationId")
        if application is None:
            return self._registry.arn_prefix.removesuffix("applications/") + "*"
        run = call.parameters.get("jobRunId")
        return self._registry.arn_prefix + str(application) + (f"/jobruns/{run}" if run else "")

    def _throttle(self, action: str) -> None:
        if self._faults.throttles_call():
            raise throttled()
        with self._rates_lock:
            if action == "StartJobRun":
                self._set_start_rate()
            bucket = self._buckets.get(action)
            if bucket is not None and not bucket.take(time.monotonic()):
                raise throttled()

    def _set_start_rate(self) -> None:
        rate = self._faults.start_rate()
        if rate != self._start_rate:
            self._start_rate = rate
            self._buckets["StartJobRun"] = TokenBucket(*rate)

    def _create_application(self, _caller: Principal, parameters: Mapping[str, Any]) -> Result:
        capacity = parameters.get("maximumCapacity", {})
        scheduler = parameters.get("schedulerConfiguration", {})
        defaults = self._settings.application
        settings = ApplicationSettings(
            application_id=new_run_id(),
            name=str(parameters.get("name", "")) or "application",
            release_label=str(parameters["releaseLabel"]),
            max_vcpu=_number(capacity.get("cpu"), defaults.max_vcpu),
            max_memory_gb=_number(capacity.get("memory"), defaults.max_memory_gb),
            max_concurrent_runs=int(scheduler.get("maxConcurrentRuns", defaults.max_concurrent_runs)),
            queue_timeout_minutes=int(scheduler.get("queueTimeoutMinutes", defaults.queue_timeout_minutes)),
        )
        application = self._registry.add_application(settings)
        return {"applicationId": settings.application_id, "name": settings.name, "arn": application.arn}

    def _get_application(self, _caller: Principal, parameters: Mapping[str, Any]) -> Result:
        return {"application": self._registry.application(parameters["applicationId"]).description()}

    def _list_applications(self, _caller: Principal, parameters: Mapping[str, Any]) -> Result:
        states = parameters.get("states")
        applications = self._registry.applications()
        return {"applications": [each.summary() for each in applications if not states or each.state in states]}

    def _start_application(self, _caller: Principal, parameters: Mapping[str, Any]) -> Result:
        self._registry.application(parameters["applicationId"]).set_state("STARTED", now())
        return {}

    def _stop_application(self, _caller: Principal, parameters: Mapping[str, Any]) -> Result:
        application = self._registry.application(parameters["applicationId"])
        if any(run.state not in TERMINAL for run in self._registry.runs(application.settings.application_id)):
            raise validation_error("The application has active job runs; cancel them first.")
        application.set_state("STOPPED", now())
        return {}

    def _start_job_run(self, caller: Principal, parameters: Mapping[str, Any]) -> Result:
        role = parameters["executionRoleArn"]
        self._iam.authorize(caller, "iam:PassRole", role)
        application = self._registry.application(parameters["applicationId"])
        job = parameters.get("jobDriver", {}).get("sparkSubmit")
        if job is None:
            raise validation_error("jobDriver.sparkSubmit is required, because this is a Spark application")
        try:
            submit = parse(job.get("sparkSubmitParameters"), _spark_defaults(parameters))
        except SubmitParametersError as error:
            raise validation_error(str(error)) from None
        if problem := refusal(submit.conf) or missing_catalog(submit.conf):
            raise validation_error(problem)
        size = size_of(submit.conf)
        token = parameters["clientToken"]
        request = {key: value for key, value in parameters.items() if key != "clientToken"}
        fingerprint = json.dumps(request, sort_keys=True)
        with self._registry.changed:
            try:
                run_id = application.tokens.find(token, fingerprint)
            except TokenMismatchError:
                raise conflict(
                    "An earlier request with this client token had other parameters; use a new token."
                ) from None
            if run_id is None:
                if sum(run.state in WAITING for run in self._registry.runs()) >= _QUEUE_LIMIT:
                    raise throttled()
                run_id = new_run_id()
                arn = f"{application.arn}/jobruns/{run_id}"
                label = application.settings.release_label
                app_id = application.settings.application_id
                run = JobRun(run_id, app_id, arn, label, caller.arn, now(), request, submit.conf, size)
                application.tokens.save(token, fingerprint, run_id)
                application.set_state("STARTED", now())
                self._registry.add(run)
            else:
                run = self._registry.run(application.settings.application_id, run_id)
        return {"applicationId": run.application_id, "jobRunId": run.run_id, "arn": run.arn}

    def _get_job_run(self, _caller: Principal, parameters: Mapping[str, Any]) -> Result:
        run = self._registry.run(parameters["applicationId"], parameters["jobRunId"])
        with self._registry.changed:
            return {"jobRun": run.description(now())}

    def _list_job_runs(self, _caller: Principal, parameters: Mapping[str, Any]) -> Result:
        application = self._registry.application(parameters["applicationId"])
        states, mode = parameters.get("states"), parameters.get("mode")
        after, before = parameters.get("createdAtAfter"), parameters.get("createdAtBefore")
        with self._registry.changed:
            summaries = [
                run.summary()
                for run in reversed(self._registry.runs(application.settings.application_id))
                if (not states or run.state in states)
                and (not mode or run.request.get("mode", "BATCH") == mode)
                and (after is None or run.created_at > after)
                and (before is None or run.created_at < before)
            ]
        start = _page_start(parameters.get("nextToken"))
        end = start + int(parameters.get("maxResults", _DEFAULT_PAGE))
        token = {"nextToken": base64.urlsafe_b64encode(str(end).encode()).decode()} if end < len(summaries) else {}
        return {"jobRuns": summaries[start:end], **token}

    def _cancel_job_run(self, _caller: Principal, parameters: Mapping[str, Any]) -> Result:
        run = self._registry.run(parameters["applicationId"], parameters["jobRunId"])
        if run.state in TERMINAL:
            raise validation_error(f"JobRun {run.run_id} is in the state {run.state} and cannot be canceled.")
        self._scheduler.cancel(run, "JobRun cancelled by the user")
        return {"applicationId": run.application_id, "jobRunId": run.run_id}

    def _get_dashboard(self, _caller: Principal, parameters: Mapping[str, Any]) -> Result:
        run = self._registry.run(parameters["applicationId"], parameters["jobRunId"])
        page = f"/_local/runs/{run.run_id}"
        return {"url": f"http://127.0.0.1:{self._settings.port}{page}?token={page_token(self._secret, page)}"}


def _spark_defaults(parameters: Mapping[str, Any]) -> dict[str, str]:
    defaults: dict[str, str] = {}
    for section in parameters.get("configurationOverrides", {}).get("applicationConfiguration", []):
        if section.get("classification") == "spark-defaults":
            defaults.update(section.get("properties", {}))
    return defaults


def _number(text: str | None, default: int) -> int:
    digits = "".join(character for character in text or "" if character.isdigit())
    return int(digits) if digits else default


def _page_start(token: str | None) -> int:
    try:
        return int(base64.urlsafe_b64decode(token)) if token else 0
    except ValueError:
        raise validation_error("nextToken is not from an earlier response of ListJobRuns") from None
