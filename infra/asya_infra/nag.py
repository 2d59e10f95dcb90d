"""Findings of cdk-nag that we know about, each acknowledged with its reason beside the construct it concerns."""

from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import Construct, IConstruct

from asya_infra.permissions.grant import Grant


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept one finding about a construct and what is below it."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))


def acknowledge_wildcards(construct: Construct, grants: list[Grant]) -> None:
    """Accept the wildcards of permissions, for the reasons these give.

    Raises:
        ValueError: if a wildcard comes without a reason.
    """
    stack = Stack.of(construct)
    reasons: dict[str, str] = {}
    for grant in grants:
        for wildcard in grant.wildcards():
            if not grant.reason:
                raise ValueError(f"{wildcard} needs a reason")
            reasons.setdefault(_readable(stack.resolve(wildcard)), grant.reason)
    for wildcard, reason in reasons.items():
        acknowledge(construct, f"AwsSolutions-IAM5[{wildcard}]", reason)


def _readable(value: Any) -> str:
    """A resolved text as cdk-nag writes it: references in angle brackets, what another stack exports by its name."""
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
