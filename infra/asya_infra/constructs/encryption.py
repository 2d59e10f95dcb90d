"""The customer managed key of the mesh file, as constructs take it, and encrypted topics of AWS services."""

import hashlib
from collections.abc import Mapping
from typing import Any

from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from asya_infra.mesh import Mesh


def customer_key(scope: Construct, mesh: Mesh) -> kms.IKey | None:
    """Return the customer managed key of a mesh; None if keys of AWS encrypt its data.

    The mesh does not own the key: its policy stays as it is (`asya_infra.permissions.encryption`).

    Args:
        scope: the construct that uses the key.
        mesh: the mesh.
    """
    return None if mesh.kms_key is None else kms.Key.from_key_arn(scope, "CustomerKey", mesh.kms_key)


def encrypted_topic(
    scope: Construct,
    name: str,
    description: str,
    publisher: str,
    *,
    conditions: Mapping[str, Any],
    customer_key: kms.IKey | None = None,
) -> sns.Topic:
    """Add a topic to which one AWS service publishes.

    The topic has its own key, unless the mesh file names one. AWS services cannot use the AWS managed key of SNS.

    Args:
        scope: the parent of the topic and its key.
        name: the name of the topic.
        description: the description of the key.
        publisher: the principal of the service, such as `events.amazonaws.com`.
        conditions: the conditions under which the service may publish. The key has none: SNS does not support
            `aws:SourceArn`, `aws:SourceAccount` and `aws:SourceOrgID` for events of EventBridge to encrypted topics. The policy
            of the topic limits who may publish.
        customer_key: a key that encrypts the topic instead of its own one. Its policy must allow the service to use it.
    """
    key = customer_key or _own_key(scope, description, publisher)
    topic = sns.Topic(scope, "Topic", topic_name=name, master_key=key, enforce_ssl=True)
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["sns:Publish"],
            principals=[iam.ServicePrincipal(publisher)],
            resources=[topic.topic_arn],
            conditions=conditions,
        )
    )
    return topic


def subscription_id(endpoint: str) -> str:
    """Return the construct id of a subscription, which follows from its endpoint.

    A number would shift with each added or removed endpoint. The other subscriptions would be replaced: receivers would have
    to confirm again, and the clean-up could delete the subscription that SNS returned for the same endpoint.
    """
    return f"Subscription{hashlib.sha256(endpoint.encode()).hexdigest()[:8]}"


def _own_key(scope: Construct, description: str, publisher: str) -> kms.Key:
    key = kms.Key(scope, "Key", description=description, enable_key_rotation=True, removal_policy=RemovalPolicy.DESTROY)
    key.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["kms:Decrypt", "kms:GenerateDataKey*"],
            principals=[iam.ServicePrincipal(publisher)],
            resources=["*"],
        )
    )
    return key
