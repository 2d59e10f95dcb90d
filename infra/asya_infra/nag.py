"""Acknowledges findings of cdk-nag, each with a reason beside its construct."""

from collections.abc import Iterable
from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import Construct, IConstruct

from asya_infra.permissions.grant import Grant


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Acknowledge a rule for a construct and its children."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))


def acknowledge_wildcards(construct: Construct, grants: Iterable[Grant]) -> None:
    """Acknowledge the wildcards of grants with the reasons of the grants.

    Raises:
        ValueError: a grant has a wildcard and no reason.
    """
    stack = Stack.of(construct)
    reasons: dict[str, str] = {}
    for grant in grants:
        for wildcard in grant.wildcards():
            if not grant.reason:
                raise ValueError(f"{wildcard}: a grant with a wildcard needs a reason; set `reason`")
            reasons.setdefault(_readable(stack.resolve(wildcard)), grant.reason)
    for wildcard, reason in reasons.items():
        acknowledge(construct, f"AwsSolutions-IAM5[{wildcard}]", reason)
        if wildcard == "Resource::*":
            acknowledge(construct, "Serverless-LambdaStarPermissions", reason)


def _readable(value: Any) -> str:
    """Return a resolved text in the form of cdk-nag: references in angle brackets, imports by their export name."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return str(separator).join(_readable(part) for part in parts)
    if "Fn::ImportValue" in value:
        return str(value["Fn::ImportValue"])
    if "Fn::GetAtt" in value:
        return f"<{'.'.join(value['Fn::GetAtt'])}>"
    return f"<{value.get('Ref', next(iter(value.values())))}>"
