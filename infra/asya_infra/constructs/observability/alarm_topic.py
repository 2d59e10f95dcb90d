"""The topic of alarms, with the receivers of the mesh file."""

import hashlib

from aws_cdk import Aws
from aws_cdk import aws_sns as sns
from constructs import Construct

from asya.protocol import names
from asya_infra.constructs.encrypted_topic import encrypted_topic
from asya_infra.mesh import Mesh


def alarm_actions(scope: Construct, mesh: Mesh) -> list[str]:
    """Return the ARN of the topic of alarms, which exists or is added; none without receivers."""
    notify = mesh.file.notify
    if notify.topic is not None:
        return [notify.topic]
    return [_topic(scope, mesh).topic_arn] if notify.email or notify.https else []


def _topic(scope: Construct, mesh: Mesh) -> sns.Topic:
    construct = Construct(scope, "Notifications")
    # Alarms have no data of envelopes, and must arrive when the customer managed key is disabled: the topic keeps its own key.
    # The key has no conditions: the form that AWS documents for alarms has none.
    topic = encrypted_topic(
        construct,
        names.resource_name(mesh.namespace, "alarms"),
        f"Alarms of the mesh {mesh.namespace}",
        "cloudwatch.amazonaws.com",
        conditions={
            "ArnLike": {"aws:SourceArn": mesh.addresses.arn("cloudwatch", f"alarm:asya-{mesh.namespace}-*")},
            "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
        },
    )
    receivers = {
        **dict.fromkeys(mesh.file.notify.email, "email"),
        **dict.fromkeys(mesh.file.notify.https, "https"),
    }
    for endpoint, protocol in receivers.items():
        # A number in the id would shift with each removed receiver, and the others would have to confirm again.
        digest = hashlib.sha256(endpoint.encode()).hexdigest()[:8]
        sns.CfnSubscription(
            construct, f"Subscription{digest}", topic_arn=topic.topic_arn, protocol=protocol, endpoint=endpoint
        )
    return topic
