"""Acknowledges findings of checkov and of cdk-nag, each with a reason beside its construct.

`tests/infra/test_checkov.py` runs checkov over the templates.
"""

from collections.abc import Iterable
from typing import Any, cast

from aws_cdk import Acknowledgment, CfnResource, Stack, Validations
from constructs import Construct, IConstruct

from asya_infra.permissions.grant import Grant

# Checks that do not fit this design anywhere. Those that do not fit one resource are acknowledged beside it.
MESH_WIDE: dict[str, str] = {
    "CKV_AWS_27": "The check knows keys of KMS only. The queues are encrypted with the keys of SQS, which cost nothing for each "
    "message.",
    "CKV_AWS_115": "The event source mapping limits the concurrency of an actor. Reserved concurrency is a part of the account's "
    "that nobody else can use; the mesh file may set it.",
    "CKV_AWS_116": "It is for asynchronous calls. The functions are called by queues, which have dead-letter queues, by the "
    "gateway, whose callers get the error, or by schedules and alarms, which call again.",
    "CKV_AWS_117": "The functions need no private network: they call AWS services, with permissions for single resources. A VPC "
    "adds endpoints or a NAT gateway, which are charged by the hour.",
    "CKV_AWS_119": "DynamoDB encrypts every table with its own keys. A customer managed key is charged for each call.",
    "CKV_AWS_158": "CloudWatch Logs encrypts every log group with its own keys. A customer managed key is charged for each call.",
    "CKV_AWS_173": "Lambda encrypts every environment with its own key. Environments hold names and settings; the functions read "
    "secrets when they run.",
}


def acknowledge_check(construct: Construct, check: str, reason: str) -> None:
    """Acknowledge a check of checkov for the resource of a construct, in its metadata.

    Args:
        construct: a construct with one resource.
        check: the id of the check, such as `CKV_AWS_18`.
        reason: why the finding stays.

    Raises:
        ValueError: the reason is empty.
    """
    if not reason.strip():
        raise ValueError(f"{construct.node.path}: the acknowledgement of {check} needs a reason")
    resource = cast("CfnResource", construct.node.default_child)
    earlier = (resource.get_metadata("checkov") or {"skip": []})["skip"]
    resource.add_metadata("checkov", {"skip": [*earlier, {"id": check, "comment": reason}]})


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
