"""Deletion protection of tables and termination protection of stacks."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya_infra.deployment.protection import (
    protect_tables,
    protected_stacks,
    unprotect_failed_stacks,
    unprotect_stacks,
)


class Account:
    """The calls of DynamoDB and CloudFormation on tables and stacks."""

    def __init__(
        self, *, tables: dict[str, bool] | None = None, stacks: dict[str, tuple[str, bool]] | None = None
    ) -> None:
        self.tables, self.stacks = tables or {}, stacks or {}
        self.changes: list[str] = []

    def client(self, _: str) -> "Account":
        return self

    def describe_table(self, **call: str) -> Any:
        return {"Table": {"DeletionProtectionEnabled": True} if self.tables[call["TableName"]] else {}}

    def update_table(self, **call: Any) -> None:
        self.tables[call["TableName"]] = call["DeletionProtectionEnabled"]
        self.changes.append(call["TableName"])

    def describe_stacks(self, **call: str) -> Any:
        if call["StackName"] not in self.stacks:
            error = {"Code": "ValidationError", "Message": f"Stack with id {call['StackName']} does not exist"}
            raise ClientError({"Error": error}, "DescribeStacks")
        status, is_protected = self.stacks[call["StackName"]]
        return {"Stacks": [{"StackStatus": status, "EnableTerminationProtection": is_protected}]}

    def update_termination_protection(self, **call: Any) -> None:
        status, _ = self.stacks[call["StackName"]]
        self.stacks[call["StackName"]] = (status, call["EnableTerminationProtection"])


def table(policy: str | None) -> dict[str, Any]:
    return {
        "Resources": {
            "Table": {
                "Type": "AWS::DynamoDB::Table",
                "Properties": {"TableName": "asya-shop-tasks"},
                **({"DeletionPolicy": policy} if policy else {}),
            },
            "Bucket": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain"},
        }
    }


@pytest.mark.parametrize("was_protected", [False, True])
@pytest.mark.parametrize(
    ("policy", "kept"), [("RetainExceptOnCreate", True), ("Retain", True), ("Delete", False), (None, False)]
)
def test_a_table_is_protected_if_it_outlives_its_stack(policy: str | None, kept: bool, was_protected: bool) -> None:
    account = Account(tables={"asya-shop-tasks": was_protected})
    for _ in range(2):
        protect_tables(account, [table(policy), {}])
    assert account.tables == {"asya-shop-tasks": kept}
    # AWS takes a minute for each change of a table.
    assert len(account.changes) == (kept != was_protected)


def test_stacks_are_released_by_name() -> None:
    account = Account(stacks={"state": ("UPDATE_COMPLETE", True), "gateway": ("CREATE_COMPLETE", False)})
    assert protected_stacks(account, ["state", "gateway", "queues-7"]) == ["state"]
    unprotect_stacks(account, ["state"])
    assert protected_stacks(account, ["state", "gateway"]) == []


def test_only_stacks_that_were_never_created_are_released_before_a_deployment() -> None:
    statuses = ("CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")
    account = Account(stacks={status: (status, True) for status in statuses})
    unprotect_failed_stacks(account, [*statuses, "new"])
    assert protected_stacks(account, statuses) == ["CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"]
