"""Acknowledges findings of checkov, each with a reason. `tests/infra/test_checkov.py` runs checkov over the templates."""

from typing import cast

from aws_cdk import CfnResource
from constructs import Construct

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
