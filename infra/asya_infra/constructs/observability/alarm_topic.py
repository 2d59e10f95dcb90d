"""The topic of alarms, with the receivers of the mesh file."""

import hashlib

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from asya.protocol import names
from asya_infra.mesh import Mesh

_CLOUDWATCH = "cloudwatch.amazonaws.com"


def alarm_actions(scope: Construct, mesh: Mesh) -> list[str]:
    """Return the ARN of the topic of alarms, which exists or is added; none without receivers."""
    notify = mesh.file.notify
    if notify.topic is not None:
        return [notify.topic]
    return [_topic(scope, mesh).topic_arn] if notify.email or notify.https else []


def _topic(scope: Construct, mesh: Mesh) -> sns.Topic:
    """Add an encrypted topic. It has its own key, because alarms cannot use the AWS managed key of SNS."""
    construct = Construct(scope, "Notifications")
    key = kms.Key(
        construct,
        "Key",
        description=f"Alarms of the mesh {mesh.namespace}",
        enable_key_rotation=True,
        removal_policy=RemovalPolicy.DESTROY,
    )
    topic = sns.Topic(
        construct,
        "Topic",
        topic_name=names.resource_name(mesh.namespace, "alarms"),
        master_key=key,
        enforce_ssl=True,
    )
    # The form that AWS documents has no condition. The policy of the topic limits who may publish.
    key.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["kms:Decrypt", "kms:GenerateDataKey*"],
            principals=[iam.ServicePrincipal(_CLOUDWATCH)],
            resources=["*"],
        )
    )
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["sns:Publish"],
            principals=[iam.ServicePrincipal(_CLOUDWATCH)],
            resources=[topic.topic_arn],
            conditions={
                "ArnLike": {"aws:SourceArn": mesh.addresses.arn("cloudwatch", f"alarm:asya-{mesh.namespace}-*")},
                "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
            },
        )
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
