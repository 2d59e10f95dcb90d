"""Protects what a mesh keeps: its tables from deletion, and its stacks of state and queues from termination.

The templates ask for the protection of stacks. That of tables is set after a deployment: CloudFormation could not take back a
first one that fails, because it cannot delete a protected table.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from botocore.exceptions import ClientError

from asya_infra.assembly import Template

_TABLE = "AWS::DynamoDB::Table"
# Creation failed, so the stack holds nothing that the mesh keeps, and only its deletion is possible.
_NEVER_CREATED = frozenset({"CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED"})


def protect_tables(session: Any, templates: Iterable[Template]) -> None:
    """Protect the tables that stay when their stack is deleted, and no others, from deletion."""
    tables = dict(_tables(templates))
    if not tables:
        return
    dynamodb = session.client("dynamodb")
    for name, is_kept in tables.items():
        if dynamodb.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled", False) != is_kept:
            dynamodb.update_table(TableName=name, DeletionProtectionEnabled=is_kept)


def protected_stacks(session: Any, stacks: Iterable[str]) -> list[str]:
    """Return those of the stacks that are protected from termination."""
    return [name for name, stack in _deployed(session, stacks) if stack.get("EnableTerminationProtection")]


def unprotect_stacks(session: Any, stacks: Iterable[str]) -> None:
    """Let these stacks be deleted."""
    cloudformation = session.client("cloudformation")
    for name in stacks:
        cloudformation.update_termination_protection(StackName=name, EnableTerminationProtection=False)


def unprotect_failed_stacks(session: Any, stacks: Iterable[str]) -> None:
    """Let the stacks be deleted whose creation failed: the CDK deletes such a stack before it creates it again."""
    failed = [
        name
        for name, stack in _deployed(session, stacks)
        if stack["StackStatus"] in _NEVER_CREATED and stack.get("EnableTerminationProtection")
    ]
    unprotect_stacks(session, failed)


def _tables(templates: Iterable[Template]) -> Iterator[tuple[str, bool]]:
    for template in templates:
        for resource in template.get("Resources", {}).values():
            if resource["Type"] == _TABLE:
                yield resource["Properties"]["TableName"], resource.get("DeletionPolicy", "Delete") != "Delete"


def _deployed(session: Any, stacks: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    cloudformation = session.client("cloudformation")
    for name in stacks:
        try:
            yield name, cloudformation.describe_stacks(StackName=name)["Stacks"][0]
        except ClientError as error:
            if "does not exist" not in error.response["Error"].get("Message", ""):
                raise
