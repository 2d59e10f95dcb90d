"""The test message to the alarm topics. Stubs hold requests and answers against the service models of botocore."""

from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from asya_cli.errors import CommandError
from asya_cli.smoke.steps import publish_test_messages

TOPIC = "arn:aws:sns:eu-central-1:123456789012:asya-shop-alarms"
RULE = "arn:aws:lambda:eu-central-1:123456789012:function:other"


class Mesh:
    """A connection to a mesh with one alarm."""

    namespace = "shop"
    region = "eu-central-1"

    def __init__(self) -> None:
        session = boto3.Session("testing", "testing", region_name=self.region)
        services: tuple[Any, ...] = ("sns", "cloudwatch", "cloudformation")
        self.stubs = {service: Stubber(session.client(service)) for service in services}
        for stub in self.stubs.values():
            stub.activate()
        self.session = SimpleNamespace(client=lambda service, _region: self.stubs[service].client)

    def has_alarm(self, *actions: str) -> None:
        resource = {
            "LogicalResourceId": "Any",
            "ResourceType": "AWS::CloudWatch::Alarm",
            "PhysicalResourceId": "asya-shop-x-sump",
            "ResourceStatus": "CREATE_COMPLETE",
            "LastUpdatedTimestamp": datetime(2026, 1, 1, tzinfo=UTC),
        }
        self.stubs["cloudformation"].add_response(
            "list_stack_resources", {"StackResourceSummaries": [resource]}, {"StackName": "Asya-shop-alarms"}
        )
        self.stubs["cloudwatch"].add_response(
            "describe_alarms",
            {"MetricAlarms": [{"AlarmName": "asya-shop-x-sump", "AlarmActions": list(actions)}]},
            {"AlarmNames": ["asya-shop-x-sump"], "MaxRecords": 100},
        )

    def has_subscription(self, arn: str) -> None:
        subscription = {"SubscriptionArn": arn, "Endpoint": "ops@example.com", "TopicArn": TOPIC}
        answer = {"Subscriptions": [subscription]}
        self.stubs["sns"].add_response("list_subscriptions_by_topic", answer, {"TopicArn": TOPIC})
        message = {"TopicArn": TOPIC, "Subject": "Test message of the mesh shop", "Message": ANY}
        self.stubs["sns"].add_response("publish", {"MessageId": "one"}, message)


@pytest.fixture
def mesh() -> Iterator[Any]:
    made = Mesh()
    yield made
    for stub in made.stubs.values():
        stub.assert_no_pending_responses()


def test_the_topic_of_the_alarms_gets_a_message(mesh: Any) -> None:
    mesh.has_alarm(TOPIC, RULE)
    mesh.has_subscription(f"{TOPIC}:1")
    assert publish_test_messages(mesh) == f"a test message was sent to {TOPIC}; see that it arrives"


def test_a_receiver_that_has_not_confirmed_is_a_failure(mesh: Any) -> None:
    mesh.has_alarm(TOPIC)
    mesh.has_subscription("PendingConfirmation")
    with pytest.raises(CommandError, match=r"have not confirmed .* get nothing: ops@example\.com"):
        publish_test_messages(mesh)


def test_alarms_that_tell_nobody_are_a_failure(mesh: Any) -> None:
    mesh.has_alarm(RULE)
    with pytest.raises(CommandError, match="the alarms of shop tell nobody"):
        publish_test_messages(mesh)


def test_a_refusal_names_the_needed_permissions(mesh: Any) -> None:
    mesh.stubs["cloudformation"].add_client_error("list_stack_resources", "AccessDenied", "not authorized")
    with pytest.raises(CommandError, match="not authorized") as caught:
        publish_test_messages(mesh)
    assert "sns:Publish" in caught.value.advice
