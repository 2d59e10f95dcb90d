"""One permission, with the reason for its wildcards."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Grant:
    """Actions on resources: one IAM statement.

    Attributes:
        reason: why the statement needs a wildcard; required if it has one.
        conditions: in the form of IAM: operator → key → value.
    """

    actions: tuple[str, ...]
    resources: tuple[str, ...]
    reason: str = ""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    effect: str = "Allow"

    def statement(self) -> dict[str, Any]:
        """Return the statement in IAM's JSON form."""
        conditions = {"Condition": dict(self.conditions)} if self.conditions else {}
        return {"Effect": self.effect, "Action": list(self.actions), "Resource": list(self.resources), **conditions}

    def wildcards(self) -> list[str]:
        """Return `Action::…` or `Resource::…` for each action and resource that contains a `*`."""
        actions = [f"Action::{action}" for action in self.actions if "*" in action]
        return actions + [f"Resource::{resource}" for resource in self.resources if "*" in resource]


def document(grants: Iterable[Grant]) -> dict[str, Any]:
    """Return a policy document with these statements."""
    return {"Version": "2012-10-17", "Statement": [grant.statement() for grant in grants]}


def of_leading_keys(patterns: Iterable[str], *, operator: str = "StringLike") -> dict[str, dict[str, object]]:
    """Return the conditions of IAM on the partition keys of a call.

    `ForAnyValue` alone would let pass a batch with one such key, and `ForAllValues` alone a call without keys.
    """
    key = "dynamodb:LeadingKeys"
    return {f"ForAllValues:{operator}": {key: list(patterns)}, "Null": {key: "false"}}
