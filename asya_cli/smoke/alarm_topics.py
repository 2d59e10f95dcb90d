"""Tells each alarm topic of a mesh a test message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.protocol import names
from asya_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.client.connection import Connection

_NAMES_PER_CALL = 100


def publish_test_messages(connection: Connection) -> str:
    """Publish a test message to each topic that the alarms of a mesh tell.

    Returns:
        A line for the user with the topics.

    Raises:
        CommandError: The alarms tell nobody, a receiver has not confirmed, or AWS refuses a call.
    """
    sns = connection.session.client("sns", connection.region)
    try:
        topics = sorted(set(_topics(connection)))
        if not topics:
            raise CommandError(
                f"the alarms of {connection.namespace} tell nobody", "Set `notify` in the mesh file, and deploy."
            )
        pending = [endpoint for topic in topics for endpoint in _unconfirmed(sns, topic)]
        for topic in topics:
            sns.publish(
                TopicArn=topic,
                Subject=f"Test message of the mesh {connection.namespace}",
                Message=f"`asya smoke --alarms` sent this message. The alarms of {connection.namespace} use this topic.",
            )
    except (ClientError, BotoCoreError) as error:
        raise CommandError(f"cannot tell the alarm topics: {error}", _PERMISSIONS) from error
    if pending:
        raise CommandError(
            f"these receivers have not confirmed their subscription and get nothing: {', '.join(pending)}",
            "Each was sent a link to confirm. To get another one, subscribe again in the SNS console.",
        )
    return f"a test message was sent to {', '.join(topics)}; see that it arrives"


_PERMISSIONS = (
    "This needs cloudformation:ListStackResources, cloudwatch:DescribeAlarms, sns:ListSubscriptionsByTopic and sns:Publish, "
    "and kms:GenerateDataKey and kms:Decrypt with the key of an encrypted topic."
)


def _topics(connection: Connection) -> Iterator[str]:
    """Yield the topics of the alarms, from the alarms themselves: the mesh file may name a topic of another stack."""
    session: Any = connection.session
    stack = names.stack_name(connection.namespace, "alarms")
    pages = (
        session.client("cloudformation", connection.region)
        .get_paginator("list_stack_resources")
        .paginate(StackName=stack)
    )
    alarms = [
        each["PhysicalResourceId"]
        for page in pages
        for each in page["StackResourceSummaries"]
        if each["ResourceType"] == "AWS::CloudWatch::Alarm"
    ]
    cloudwatch = session.client("cloudwatch", connection.region)
    for start in range(0, len(alarms), _NAMES_PER_CALL):
        answer = cloudwatch.describe_alarms(
            AlarmNames=alarms[start : start + _NAMES_PER_CALL], MaxRecords=_NAMES_PER_CALL
        )
        for alarm in answer["MetricAlarms"]:
            yield from (action for action in alarm.get("AlarmActions", []) if ":sns:" in action)


def _unconfirmed(sns: Any, topic: str) -> Iterator[str]:
    for page in sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic):
        for subscription in page["Subscriptions"]:
            if subscription["SubscriptionArn"] == "PendingConfirmation":
                yield subscription["Endpoint"]
