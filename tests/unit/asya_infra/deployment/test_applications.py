"""Stopping and tagging a Spark application."""

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya_infra.deployment.applications import ACTIVE_RUNS, Applications, BusyApplicationError
from tests.unit.asya_infra.deployment.stubs import StubbedSession

ARN = "arn:aws:emr-serverless:us-east-1:123456789012:/applications/00abc"
AT = datetime(2026, 1, 1, tzinfo=UTC)


class Desk:
    """Applications with stubs, and what the user is told."""

    def __init__(self) -> None:
        self.session, self.told, self.slept = StubbedSession(), list[str](), list[float]()
        self.applications = Applications(self.session, self.told.append, self.slept.append)

    def application(self, state: str, **more: Any) -> None:
        application = {
            "applicationId": "00abc",
            "arn": ARN,
            "releaseLabel": "emr-spark-8.1.0",
            "type": "SPARK",
            "state": state,
            "createdAt": AT,
            "updatedAt": AT,
            **more,
        }
        self.session.answer("emr-serverless", "get_application", {"application": application}, applicationId="00abc")

    def runs(self, *names: str) -> None:
        summaries = [
            {
                "applicationId": "00abc",
                "id": f"00{index}",
                "name": name,
                "arn": ARN,
                "createdBy": "arn:aws:iam::123456789012:role/x",
                "createdAt": AT,
                "updatedAt": AT,
                "executionRole": "arn:aws:iam::123456789012:role/x",
                "state": "RUNNING",
                "stateDetails": "-",
                "releaseLabel": "emr-spark-8.1.0",
            }
            for index, name in enumerate(names)
        ]
        self.session.answer(
            "emr-serverless", "list_job_runs", {"jobRuns": summaries}, applicationId="00abc", states=list(ACTIVE_RUNS)
        )


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_it_waits_for_active_runs_and_names_them_once(desk: Desk) -> None:
    for names in (["a", "b"], ["a", "b"], ["b"], []):
        desk.runs(*names)

    desk.applications.wait_for_runs("00abc")

    assert desk.told == [
        "waiting for 2 job runs of the application 00abc: a (RUNNING), b (RUNNING)",
        "waiting for 1 job runs of the application 00abc: b (RUNNING)",
    ]
    assert len(desk.slept) == 3
    desk.session.check()


def test_it_stops_an_application_and_waits(desk: Desk) -> None:
    for state in ("STARTING", "STARTED", "STOPPING", "STOPPED"):
        desk.application(state)
        if state == "STARTED":
            desk.session.answer("emr-serverless", "stop_application", {}, applicationId="00abc")

    desk.applications.stop("00abc")

    assert desk.told == ["stopping the application 00abc"]
    desk.session.check()


@pytest.mark.parametrize("state", ["CREATED", "STOPPED", "TERMINATED"])
def test_an_application_at_rest_needs_no_stop(desk: Desk, state: str) -> None:
    desk.application(state)
    desk.applications.stop("00abc")
    assert desk.slept == []


def test_an_application_that_is_gone_needs_no_stop(desk: Desk) -> None:
    desk.session.refuse("emr-serverless", "get_application", "ResourceNotFoundException")
    desk.applications.stop("00abc")


def test_an_application_with_runs_cannot_be_stopped(desk: Desk) -> None:
    desk.application("STARTED")
    desk.session.refuse("emr-serverless", "stop_application", "ValidationException", "it has active job runs")
    with pytest.raises(BusyApplicationError, match="it has active job runs"):
        desk.applications.stop("00abc")


def test_an_application_that_does_not_stop(desk: Desk) -> None:
    for _ in range(40):
        desk.application("STOPPING")
    with pytest.raises(BusyApplicationError, match="does not stop; it is STOPPING"):
        desk.applications.stop("00abc")


def test_tags_change_and_those_of_others_stay(desk: Desk) -> None:
    desk.application("STARTED", tags={"team": "old", "cost": "1", "gone": "x"})
    desk.session.answer("emr-serverless", "tag_resource", {}, resourceArn=ARN, tags={"team": "orders"})
    desk.session.answer("emr-serverless", "untag_resource", {}, resourceArn=ARN, tagKeys=["gone"])

    desk.applications.tag("00abc", {"team": "old", "gone": "x", "never": "y"}, {"team": "orders"})

    desk.session.check()


def test_equal_tags_need_no_call(desk: Desk) -> None:
    desk.application("STARTED", tags={"team": "orders"})
    desk.applications.tag("00abc", {}, {"team": "orders"})


@pytest.mark.parametrize(
    ("resource", "identity"),
    [
        ({"ResourceStatus": "UPDATE_COMPLETE", "PhysicalResourceId": "00abc"}, "00abc"),
        ({"ResourceStatus": "CREATE_FAILED"}, None),
        # The stack is ROLLBACK_COMPLETE after a failed first deployment.
        ({"ResourceStatus": "DELETE_COMPLETE", "PhysicalResourceId": "00abc"}, None),
    ],
    ids=["deployed", "not created", "rolled back"],
)
def test_the_id_of_an_application(desk: Desk, resource: dict[str, Any], identity: str | None) -> None:
    detail = {
        "LogicalResourceId": "Application",
        "ResourceType": "AWS::EMRServerless::Application",
        "LastUpdatedTimestamp": AT,
        **resource,
    }
    desk.session.answer(
        "cloudformation",
        "describe_stack_resource",
        {"StackResourceDetail": detail},
        StackName="Asya-shop-spark",
        LogicalResourceId="Application",
    )
    assert desk.applications.id_of("Asya-shop-spark", "Application") == identity


def test_an_application_that_was_never_created_has_no_id(desk: Desk) -> None:
    message = "Resource Application does not exist for stack Asya-shop-spark"
    desk.session.refuse("cloudformation", "describe_stack_resource", "ValidationError", message)
    assert desk.applications.id_of("Asya-shop-spark", "Application") is None


def test_another_error_of_cloudformation_is_raised(desk: Desk) -> None:
    desk.session.refuse("cloudformation", "describe_stack_resource", "AccessDenied", "not authorized")
    with pytest.raises(ClientError, match="not authorized"):
        desk.applications.id_of("Asya-shop-spark", "Application")


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "ValidationException"])
def test_an_application_that_is_gone_has_no_runs(desk: Desk, code: str) -> None:
    desk.session.refuse("emr-serverless", "list_job_runs", code)
    desk.session.refuse("emr-serverless", "get_application", "ResourceNotFoundException")
    desk.applications.wait_for_runs("00abc")
    desk.session.check()


def test_runs_that_cannot_be_listed(desk: Desk) -> None:
    desk.session.refuse("emr-serverless", "list_job_runs", "ValidationException", "states are wrong")
    desk.application("STARTED")
    with pytest.raises(ClientError, match="states are wrong"):
        desk.applications.active_runs("00abc")
