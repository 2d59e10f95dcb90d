"""Batches of SQS requests, which MiniStack's IAM takes for actions of their own.

AWS authorises `SendMessageBatch` as `sqs:SendMessage`; there is no action of the batch's name. MiniStack asks for
`sqs:SendMessageBatch`. So that the templates stay what AWS needs, the roles' policies are given the batch actions
here, after the deployment, wherever they allow or deny the single ones.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_BATCHED = ("sqs:SendMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")


def with_batch_actions(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same policy, with the batch action beside each single one."""
    statements = document["Statement"] if isinstance(document["Statement"], list) else [document["Statement"]]
    return {**document, "Statement": [_with_batch_actions(statement) for statement in statements]}


def _with_batch_actions(statement: dict[str, Any]) -> dict[str, Any]:
    named = statement.get("Action", [])
    actions = [named] if isinstance(named, str) else list(named)
    batches = [f"{action}Batch" for action in actions if action in _BATCHED and f"{action}Batch" not in actions]
    return {**statement, "Action": [*actions, *batches]} if batches else statement


def add_batch_actions(iam: Any, namespace: str) -> None:
    """Give the roles of a mesh the batch actions that go with what they may do."""
    for page in iam.get_paginator("list_roles").paginate():
        for role in page["Roles"]:
            if role["RoleName"].startswith(f"asya-{namespace}-"):
                _add_batch_actions(iam, role["RoleName"])


def _add_batch_actions(iam: Any, role: str) -> None:
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        found = json.loads(document) if isinstance(document, str) else document
        wanted = with_batch_actions(found)
        if wanted != found:
            iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(wanted))
