"""IAM actions for batches of SQS messages, which only MiniStack has.

AWS authorizes `SendMessageBatch` as `sqs:SendMessage`; MiniStack requires `sqs:SendMessageBatch`. The templates name the
actions of AWS. After the deployment this module adds the batch actions to the roles' policies.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_BATCHED = ("sqs:SendMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")


def with_batch_actions(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy with the batch action next to each single action."""
    statements = document["Statement"] if isinstance(document["Statement"], list) else [document["Statement"]]
    return {**document, "Statement": [_with_batch_actions(statement) for statement in statements]}


def _with_batch_actions(statement: dict[str, Any]) -> dict[str, Any]:
    value = statement.get("Action", [])
    actions = [value] if isinstance(value, str) else list(value)
    batches = [f"{action}Batch" for action in actions if action in _BATCHED and f"{action}Batch" not in actions]
    return {**statement, "Action": [*actions, *batches]} if batches else statement


def add_batch_actions(iam: Any, namespace: str) -> None:
    """Add the batch actions to the policies of a mesh's roles, inline and managed ones."""
    managed: set[str] = set()
    for page in iam.get_paginator("list_roles").paginate():
        for role in page["Roles"]:
            if role["RoleName"].startswith(f"asya-{namespace}-"):
                _extend_inline(iam, role["RoleName"])
                attached = iam.list_attached_role_policies(RoleName=role["RoleName"])["AttachedPolicies"]
                managed |= {policy["PolicyArn"] for policy in attached}
    for arn in sorted(managed):
        _extend_managed(iam, arn)


def _extend_managed(iam: Any, arn: str) -> None:
    """Replace a managed policy; a policy may have five versions."""
    current = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    text = iam.get_policy_version(PolicyArn=arn, VersionId=current)["PolicyVersion"]["Document"]
    document = json.loads(text) if isinstance(text, str) else text
    extended = with_batch_actions(document)
    if extended != document:
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=json.dumps(extended), SetAsDefault=True)
        iam.delete_policy_version(PolicyArn=arn, VersionId=current)


def _extend_inline(iam: Any, role: str) -> None:
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        text = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        document = json.loads(text) if isinstance(text, str) else text
        extended = with_batch_actions(document)
        if extended != document:
            iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(extended))
