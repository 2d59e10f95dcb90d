"""Calls to EMR Serverless, checked against botocore's model."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from asya.heavy.aws.completion_messages import JobRunEvent, decode_event, encode_event
from asya.heavy.aws.emr_serverless import BusyError, ConflictingRunError, EmrServerless, RefusedRunError
from asya.heavy.capacity import failed_for_capacity
from asya.heavy.run_request import RunRequest

ARN = "arn:aws:emr-serverless:us-east-1:123456789012:/applications/00app/jobruns/run1"
REQUEST = RunRequest(
    name="asya.ns.heavy.0000000001",
    client_token="t" * 64,
    role_arn="arn:aws:iam::123456789012:role/asya-ns-x-job",
    entry_point="s3://assets/entry.py",
    arguments=("--manifest", "s3://b/runs/heavy/0000000001/manifest.json"),
    submit_parameters="--conf a=b",
    session_policy='{"Version":"2012-10-17","Statement":[]}',
    policy_arns=("arn:aws:iam::123456789012:policy/asya-ns-heavy-access",),
    time_limit=6,
    log_uri="s3://b/runs/heavy/0000000001/logs/",
    tags={"asya:run": "asya.ns.heavy.0000000001"},
)


@pytest.fixture
def stub() -> Any:
    client = boto3.client("emr-serverless", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(client) as stubber:
        yield stubber


def job_runs(stub: Stubber) -> EmrServerless:
    return EmrServerless(stub.client, application_id="00app")


def test_what_is_sent_fits_the_services_model(stub: Stubber) -> None:
    expected = {
        "applicationId": "00app",
        "clientToken": REQUEST.client_token,
        "executionRoleArn": REQUEST.role_arn,
        "executionIamPolicy": {"policy": REQUEST.session_policy, "policyArns": list(REQUEST.policy_arns)},
        "jobDriver": {
            "sparkSubmit": {
                "entryPoint": REQUEST.entry_point,
                "entryPointArguments": list(REQUEST.arguments),
                "sparkSubmitParameters": REQUEST.submit_parameters,
            }
        },
        "configurationOverrides": {
            "monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": REQUEST.log_uri}}
        },
        "tags": REQUEST.tags,
        "executionTimeoutMinutes": 6,
        "name": REQUEST.name,
    }
    stub.add_response("start_job_run", {"applicationId": "00app", "jobRunId": "run1", "arn": ARN}, expected)

    assert job_runs(stub).start(REQUEST) == "run1"


def test_emr_serverless_keeps_no_copy_of_logs_that_only_the_customers_key_may_encrypt(stub: Stubber) -> None:
    logs = {
        "s3MonitoringConfiguration": {"logUri": REQUEST.log_uri},
        "managedPersistenceMonitoringConfiguration": {"enabled": False},
    }
    others = ("clientToken", "executionRoleArn", "executionIamPolicy", "jobDriver", "tags", "executionTimeoutMinutes")
    expected = {
        **dict.fromkeys(("applicationId", "name", *others), ANY),
        "configurationOverrides": {"monitoringConfiguration": logs},
    }
    stub.add_response("start_job_run", {"applicationId": "00app", "jobRunId": "run1", "arn": ARN}, expected)

    assert job_runs(stub).start(replace(REQUEST, managed_logs=False)) == "run1"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ThrottlingException", BusyError),
        ("TooManyRequestsException", BusyError),
        ("ServiceQuotaExceededException", BusyError),
        ("InternalServerException", BusyError),
        ("ConflictException", ConflictingRunError),
        ("ValidationException", RefusedRunError),
        ("AccessDeniedException", ClientError),
        ("ResourceNotFoundException", ClientError),
    ],
)
def test_error_codes_map_to_errors(stub: Stubber, code: str, kind: type[Exception]) -> None:
    stub.add_client_error("start_job_run", code, "as requested")

    with pytest.raises(kind) as raised:
        job_runs(stub).start(REQUEST)

    if isinstance(raised.value, BusyError):
        assert raised.value.for_capacity is (code == "ServiceQuotaExceededException")
    assert "as requested" in str(raised.value)


def test_a_run_is_found_by_its_name(stub: Stubber) -> None:
    runs = [_summary("run1", "another"), _summary("run2", REQUEST.name)]
    stub.add_response("list_job_runs", {"jobRuns": runs}, {"applicationId": "00app", "createdAtAfter": ANY})

    assert job_runs(stub).find(REQUEST.name, since=datetime(2026, 1, 1, tzinfo=UTC)) == "run2"


def test_our_own_events_read_like_the_services() -> None:
    event = JobRunEvent("00app", "run1", "asya.ns.heavy.0000000001", "FAILED", "exit code 137")

    assert decode_event(encode_event(event).encode()) == event
    assert decode_event(b'{"detail-type": "something else", "detail": {}}') is None
    with pytest.raises(ValueError, match="JSON object"):
        decode_event(b"[]")


def _summary(job_run_id: str, name: str) -> dict[str, Any]:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return {
        "applicationId": "00app",
        "id": job_run_id,
        "name": name,
        "arn": ARN,
        "createdBy": "arn:aws:iam::123456789012:role/x",
        "createdAt": at,
        "updatedAt": at,
        "executionRole": REQUEST.role_arn,
        "state": "RUNNING",
        "stateDetails": "as requested",
        "releaseLabel": "emr-spark-8.1.0",
    }


@pytest.mark.rule("10.busy.no-room")
@pytest.mark.parametrize(
    ("state", "details", "minutes", "more", "lacked_capacity"),
    [
        ("FAILED", "Job run exceeded the time that it may queue", 20, {}, True),
        ("FAILED", "The execution role cannot be assumed", 20, {}, False),
        ("FAILED", "Job timed out", 20, {"startedAt": datetime(2026, 1, 1, tzinfo=UTC)}, False),
        ("CANCELLED", "Job run timed out", 360, {}, True),
        ("CANCELLED", "JobRun cancelled by the user", 20, {}, False),
        ("SUCCESS", "queue", 400, {}, False),
    ],
)
def test_a_run_that_ended_in_the_queue_lacked_capacity(
    stub: Stubber, state: str, details: str, minutes: int, more: dict[str, Any], lacked_capacity: bool
) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    run = {
        "applicationId": "00app",
        "jobRunId": "run1",
        "arn": ARN,
        "createdBy": REQUEST.role_arn,
        "createdAt": at,
        "updatedAt": at,
        "executionRole": REQUEST.role_arn,
        "state": state,
        "stateDetails": details,
        "releaseLabel": "emr-spark-8.1.0",
        "jobDriver": {"sparkSubmit": {"entryPoint": "s3://assets/entry.py"}},
        "queuedDurationMilliseconds": minutes * 60_000,
        **more,
    }
    stub.add_response("get_job_run", {"jobRun": run}, {"applicationId": "00app", "jobRunId": "run1"})

    ended = job_runs(stub).state("run1")

    assert failed_for_capacity(ended.state, ended.details, has_driver_output=False) is lacked_capacity
    assert ended.details.startswith(details)
