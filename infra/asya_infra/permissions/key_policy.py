"""The statements that the policy of a customer managed key needs for AWS services.

The key belongs to the customer, so its policy is not deployed: `asya doctor` compares it with these statements. The roles of
the mesh need none, if the policy lets the IAM policies of the account count.
"""

from collections.abc import Iterator, Mapping
from typing import Any


def service_statements(
    *, namespace: str, partition: str, region: str, account: str, suffix: str, events: bool, objects: bool = False
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each service that uses the key by itself, with its statement.

    Args:
        namespace: the namespace with its stage.
        suffix: the domain of service names, `amazonaws.com` outside of China.
        events: whether a rule of EventBridge sends to a queue or a topic.
        objects: whether the mesh's bucket notifies a queue.
    """
    groups = f"arn:{partition}:logs:{region}:{account}:log-group:/aws/*/asya-{namespace}-*"
    logs = f"logs.{region}.{suffix}"
    actions = ("Encrypt", "Decrypt", "ReEncrypt*", "GenerateDataKey*", "Describe*")
    yield logs, _statement(logs, actions, {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}})
    if events:
        rule = f"arn:{partition}:events:{region}:{account}:rule"
        rules = [f"{rule}/asya-{namespace}-*", f"{rule}/*/asya-{namespace}-*"]
        yield (
            "events.amazonaws.com",
            _statement("events.amazonaws.com", ("Decrypt", "GenerateDataKey"), {"ArnLike": {"aws:SourceArn": rules}}),
        )
    if objects:
        buckets = f"arn:{partition}:s3:::asya-{namespace}-*"
        condition = {"ArnLike": {"aws:SourceArn": buckets}, "StringEquals": {"aws:SourceAccount": account}}
        yield "s3.amazonaws.com", _statement("s3.amazonaws.com", ("Decrypt", "GenerateDataKey"), condition)


def account_statement(*, partition: str, account: str) -> dict[str, Any]:
    """Return the statement that lets the IAM policies of the account count. A new key has it."""
    root = {"AWS": f"arn:{partition}:iam::{account}:root"}
    return {"Effect": "Allow", "Principal": root, "Action": "kms:*", "Resource": "*"}


def allowed_principals(policy: Mapping[str, Any]) -> frozenset[str]:
    """Return the services, accounts and roles that some statement of a key's policy allows something.

    Actions and conditions of a statement are not compared: there are many ways to write what is needed.
    """
    statements = policy.get("Statement", [])
    allowed: set[str] = set()
    for statement in statements if isinstance(statements, list) else [statements]:
        if statement.get("Effect") != "Allow":
            continue
        principal = statement.get("Principal", {})
        values = principal.values() if isinstance(principal, dict) else [principal]
        for value in values:
            allowed.update([value] if isinstance(value, str) else value)
    return frozenset(allowed)


def _statement(service: str, actions: tuple[str, ...], condition: dict[str, Any]) -> dict[str, Any]:
    return {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": [f"kms:{action}" for action in actions],
        "Resource": "*",
        "Condition": condition,
    }
